"""Messages to events: the last step before the debate, and the place where "own" is checked (§5.2).

Pure. `arbiter.permissions` has let the message through; what it would not let through cannot arrive here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from arbiter import admission
from arbiter.debate import events
from arbiter.debate.effects import Channel
from consilium import messages
from consilium.errors import ErrorCode, PeerError

if TYPE_CHECKING:
    from arbiter.admission import Rights
    from arbiter.debate.events import Event
    from consilium.codec import Line


def from_control(session: str, name: str, rights: Rights, line: Line[Any]) -> Event:
    """Translate a registered seat's control message. Raises `PeerError` (NOT_OWNER)."""
    msg_id = line.msg_id
    match line.message:
        case messages.Ack(turn_id=turn_id):
            return events.TurnAcknowledged(session, msg_id, turn_id)
        case messages.TurnEnd(turn_id=turn_id, speech=speech, usage=usage, refused=refused):
            return events.TurnEnded(session, msg_id, turn_id, speech, usage, refused)
        case messages.TurnFailed(turn_id=turn_id) as failed:
            return events.TurnFaulted(
                session,
                msg_id,
                turn_id,
                failed.fault,
                failed.prompt_sent,
                failed.detail,
                failed.partial_bytes,
                failed.resets_at,
                failed.refused,
            )
        case messages.StateUpdate() as change:
            granted = admission.update(change, name, rights)
            return events.StateUpdated(
                session,
                msg_id,
                granted.required,
                granted.disconnect_policy,
                over_required=granted.over_required,
                over_policy=granted.over_policy,
            )
        case messages.Unreg(name=claimed, reason=reason):
            if claimed not in (None, name):
                raise PeerError(ErrorCode.NOT_OWNER, "this session may not remove that participant")
            return events.SeatLeft(session, msg_id, reason)
        case messages.StatusRequest():
            return events.StatusAsked(session, msg_id, Channel.CONTROL)
        case other:
            raise AssertionError(f"permissions let {type(other).__name__} through")


def from_data(session: str, participant_id: str, line: Line[Any]) -> Event:
    """Translate a bound seat's data message. Raises `PeerError` (NOT_OWNER)."""
    match line.message:
        case messages.Speech(turn_id=turn_id, text=text, usage=usage):
            return events.SpeechReceived(session, line.msg_id, turn_id, text, usage)
        case messages.SystemEvent(event=event, participant_id=claimed):
            if claimed not in (None, participant_id):
                raise PeerError(ErrorCode.NOT_OWNER, "this session may not speak for that participant")
            return events.SeatReported(session, line.msg_id, event)
        case other:
            raise AssertionError(f"permissions let {type(other).__name__} through")


def from_admin(session: str, line: Line[Any]) -> Event:
    """Translate an operator's message. WATCH is none of the debate's business and does not come here."""
    match line.message:
        case messages.StatusRequest():
            return events.StatusAsked(session, line.msg_id, Channel.ADMIN)
        case command if isinstance(command, events.Command):
            return events.Operated(session, line.msg_id, command)
        case other:
            raise AssertionError(f"permissions let {type(other).__name__} through")
