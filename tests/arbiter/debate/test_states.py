"""Any state, any event (§7.3): legal or refused, and what is refused changes nothing."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
from playbook import Playbook, frozen

from arbiter.debate import events
from arbiter.debate.effects import Channel, Refuse
from arbiter.debate.states import LEGAL, TERMINAL, TRANSITIONS, is_legal
from consilium import messages
from consilium.errors import ErrorCode, PeerError
from consilium.messages import DebateState, DisconnectPolicy, Fault, Meta, PromptSent


def waiting(play: Playbook) -> None:
    play.joins("ada")


def ready(play: Playbook) -> None:
    play.joins("ada")


def running(play: Playbook) -> None:
    play.everybody_joins()


def paused(play: Playbook) -> None:
    play.everybody_joins()
    play.is_lost("bob")


def resuming(play: Playbook) -> None:
    play.everybody_joins()
    play.fails("ada")
    play.commands(messages.Resume(seats={"ada": messages.Recovery.COLD}))


def finished(play: Playbook) -> None:
    play.everybody_joins()
    play.commands(messages.Terminate())


def stopped(play: Playbook) -> None:
    play.everybody_joins()
    play.round()


def failed(play: Playbook) -> None:
    play.everybody_joins()
    play.happens(events.RecordFailed("disk full"))


WAYS: dict[DebateState, Callable[[Playbook], None]] = {
    DebateState.WAITING_QUORUM: waiting,
    DebateState.READY: ready,
    DebateState.RUNNING: running,
    DebateState.PAUSED: paused,
    DebateState.RESUMING: resuming,
    DebateState.FINISHED: finished,
    DebateState.STOPPED_BY_CAP: stopped,
    DebateState.ERROR: failed,
}

EVENTS: list[events.Event] = [
    events.SeatRegistered("dan", "m", "dan_AB12CD34", "dan", False, DisconnectPolicy.DROP, Meta(), "t"),
    events.DataBound("ada", "m"),
    events.TurnAcknowledged("ada", "m", 1),
    events.SpeechReceived("ada", "m", 1, "text", None),
    events.TurnEnded("ada", "m", 1, False),
    events.TurnFaulted("ada", "m", 1, Fault.STALLED, PromptSent.YES, ""),
    events.StateUpdated("ada", "m", False, None, False),
    events.SeatLeft("ada", "m", ""),
    events.SeatReported("ada", "m", "HUMAN_SKIP"),
    events.StatusAsked("ada", "m", Channel.CONTROL),
    events.SessionLost("ada", "gone"),
    events.AlarmRang(),
    events.RecordFailed("disk full"),
    events.RecordDelayed("disk full"),
    events.Reloaded("operator", "m", ("certificate",)),
    events.Reloaded(None, None, ()),
    *(
        events.Operated("operator", "m", command)
        for command in (
            messages.Kick(seat="ada"),
            messages.ForceTurnEnd(),
            messages.SetTopic(topic="t"),
            messages.SetPhase(phase=messages.Phase.CLOSING),
            messages.Inject(text="t"),
            messages.Pause(),
            messages.Resume(),
            messages.Next(seat="ada"),
            messages.Terminate(),
        )
    ),
]


def in_state(state: DebateState) -> Playbook:
    """A debate that got into ``state`` the ordinary way."""
    dynamic = {"mode": "dynamic"} if state is DebateState.READY else {}
    play = Playbook(caps={"max_rounds": 1}, roster=dynamic)
    WAYS[state](play)
    assert play.state() is state
    return play


def label(event: events.Event) -> str:
    inner = event.command if isinstance(event, events.Operated) else event
    return type(inner).__name__


@pytest.mark.parametrize("state", list(DebateState))
@pytest.mark.parametrize("event", EVENTS, ids=label)
def test_any_state_and_any_event(state: DebateState, event: events.Event) -> None:
    play = in_state(state)
    before = copy.deepcopy(play.debate)
    play.happens(event)
    if not is_legal(state, event):
        assert play.refusal is not None
    if play.refusal is not None:
        assert [type(effect) for effect in play.latest] == [Refuse]
        assert frozen(play.debate) == frozen(before)
    if state in TERMINAL:
        assert play.state() is state
    if state is DebateState.PAUSED and not isinstance(event, events.Operated | events.RecordFailed):
        assert play.state() is DebateState.PAUSED


@pytest.mark.parametrize("event", EVENTS, ids=label)
def test_every_event_has_its_row(event: events.Event) -> None:
    key = type(event.command) if isinstance(event, events.Operated) else type(event)
    assert key in LEGAL


def test_an_event_without_a_row_is_refused_everywhere() -> None:
    class Unheard:
        session = "x"
        msg_id = "m"

    assert not any(is_legal(state, Unheard()) for state in DebateState)  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize("state", list(DebateState))
def test_a_turn_that_is_not_open_is_a_mismatch_in_every_state(state: DebateState) -> None:
    play = in_state(state)
    play.happens(events.SpeechReceived("ada", "m", 99, "text", None))
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TURN_MISMATCH


def test_terminal_states_lead_nowhere() -> None:
    assert all(not TRANSITIONS[state] for state in TERMINAL)
    assert set(TRANSITIONS) == set(DebateState)


def test_a_bug_that_refuses_a_fact_is_not_swallowed() -> None:

    play = Playbook()
    with pytest.raises(AssertionError, match="a fact was refused"):
        play.debate._refuse(events.AlarmRang(), PeerError(ErrorCode.TIMEOUT, "no"))
