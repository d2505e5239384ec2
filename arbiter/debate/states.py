"""What is legal when (§7.3), as a table.

1. A pair that is not listed is refused, and changes nothing.
2. Nothing leaves a terminal state; only an operator's command leaves PAUSED.
3. Facts (a connection is gone, time has passed, the disk refused) are never refused: they are not requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from arbiter.debate import events
from consilium import messages
from consilium.errors import ErrorCode
from consilium.messages import DebateState

if TYPE_CHECKING:
    from collections.abc import Mapping

EVERY = frozenset(DebateState)
TERMINAL = frozenset({DebateState.FINISHED, DebateState.STOPPED_BY_CAP, DebateState.ERROR})
OPEN = EVERY - TERMINAL
STARTED = frozenset({DebateState.RUNNING, DebateState.PAUSED, DebateState.RESUMING})

LEGAL: Mapping[type, frozenset[DebateState]] = {
    events.SeatRegistered: OPEN,
    events.DataBound: OPEN,
    # A turn is open in STARTED at most, and the handlers refuse every id but its own.
    events.TurnAcknowledged: STARTED,
    events.SpeechReceived: STARTED,
    events.TurnEnded: STARTED,
    events.TurnFaulted: STARTED,
    events.StateUpdated: OPEN,
    events.SeatLeft: OPEN,
    events.SeatReported: OPEN,
    events.StatusAsked: EVERY,
    events.SessionLost: EVERY,
    events.AlarmRang: EVERY,
    events.RecordFailed: EVERY,
    events.RecordDelayed: EVERY,
    events.Reloaded: EVERY,
    messages.Kick: OPEN,
    messages.ForceTurnEnd: STARTED,
    messages.SetTopic: OPEN,
    messages.SetPhase: OPEN,
    messages.Inject: OPEN,
    messages.Pause: frozenset({DebateState.RUNNING, DebateState.RESUMING}),
    messages.Resume: frozenset({DebateState.READY, DebateState.PAUSED}),
    messages.Next: OPEN,
    messages.Terminate: OPEN,
}
"""Event, or operator's command, to the states in which it is heard."""

TRANSITIONS: Mapping[DebateState, frozenset[DebateState]] = {
    DebateState.WAITING_QUORUM: frozenset({DebateState.READY}) | TERMINAL,
    DebateState.READY: frozenset({DebateState.WAITING_QUORUM, DebateState.RUNNING}) | TERMINAL,
    DebateState.RUNNING: frozenset({DebateState.PAUSED}) | TERMINAL,
    DebateState.PAUSED: frozenset({DebateState.RUNNING, DebateState.RESUMING}) | TERMINAL,
    DebateState.RESUMING: frozenset({DebateState.RUNNING, DebateState.PAUSED}) | TERMINAL,
    DebateState.FINISHED: frozenset(),
    DebateState.STOPPED_BY_CAP: frozenset(),
    DebateState.ERROR: frozenset(),
}
"""State to the states that may follow it."""

_TURN_EVENTS = (events.TurnAcknowledged, events.SpeechReceived, events.TurnEnded, events.TurnFaulted)


def is_legal(state: DebateState, event: events.Event) -> bool:
    """Say whether ``event`` is heard in ``state``."""
    key = type(event.command) if isinstance(event, events.Operated) else type(event)
    return state in LEGAL.get(key, frozenset())


def refusal_code(event: events.Event) -> ErrorCode:
    """Name the code for an event that is not heard: a turn that is over stays a mismatch for ever (§6.4)."""
    return ErrorCode.TURN_MISMATCH if isinstance(event, _TURN_EVENTS) else ErrorCode.INVALID_STATE
