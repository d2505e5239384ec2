"""The operator's commands (§3.3.D): each checked whole, then recorded, then carried out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

from arbiter.debate.delta import MODERATOR, Contribution
from consilium import messages
from consilium.errors import ErrorCode, PeerError
from consilium.messages import DebateState, Recovery, When
from consilium.records import EventName

if TYPE_CHECKING:
    from arbiter.debate import events
    from arbiter.debate.events import Command
    from arbiter.debate.flow import Flow
    from arbiter.debate.roster import Seat

REMOVED = "removed_by_operator"
RELOAD = "RELOAD"


def carry_out(debate: Flow, command: Command, now: float) -> None:
    """Do what the operator commands. Raises `PeerError` (INVALID_STATE) where it makes no sense now."""
    match command:
        case messages.SetTopic():
            _set_topic(debate, command)
        case messages.SetPhase():
            _set_phase(debate, command)
        case messages.Inject():
            _inject(debate, command)
        case messages.Kick():
            _kick(debate, command, now)
        case messages.ForceTurnEnd():
            _force_turn_end(debate, command, now)
        case messages.Next():
            _next(debate, command, now)
        case messages.Pause():
            _note(debate, command, reason=command.reason)
            debate.pause(command.reason or "operator", now)
        case messages.Resume():
            _resume(debate, command, now)
        case messages.Terminate():
            _terminate(debate, command, now)
        case _:
            assert_never(command)


def _note(debate: Flow, command: Command, seat: Seat | None = None, **data: Any) -> None:
    """Every operation leaves its event in the transcript."""
    debate.record(EventName.OPERATOR_COMMAND, seat, operation=command.type, **data)


def note_reload(debate: Flow, event: events.Reloaded) -> None:
    """A reload is no move of the debate; the record says what changed by name, and who asked for it."""
    by = event.by if event.session is None else "operator"
    debate.record(EventName.OPERATOR_COMMAND, None, operation=RELOAD, by=by, changed=list(event.changed))


def _impossible(message: str) -> PeerError:
    return PeerError(ErrorCode.INVALID_STATE, message)


def _set_topic(debate: Flow, command: messages.SetTopic) -> None:
    _note(debate, command)
    debate.topic = command.topic
    debate.record(EventName.TOPIC_CHANGED, None, topic=command.topic)


def _set_phase(debate: Flow, command: messages.SetPhase) -> None:
    due = _due(debate, command)
    if command.round is None and command.phase is debate.phase:
        raise _impossible(f"the phase is {command.phase} already")
    _note(debate, command, phase=command.phase.value, when=command.when.value, round=due)
    if due is None:
        debate.change_phase(command.phase)
    else:
        debate.schedule.phases[due] = command.phase


def _due(debate: Flow, command: messages.SetPhase | messages.Terminate) -> int | None:
    """Return the number of the round at whose end a command is due; None is now."""
    if command.when is When.NOW:
        if command.round is not None:
            raise _impossible("a round goes with when: round_end")
        return None
    under_way = debate.meter.rounds + 1
    if command.round is None:
        return under_way
    if command.round < under_way:
        raise _impossible(f"round {command.round} is over: round {under_way} is under way")
    return command.round


def _inject(debate: Flow, command: messages.Inject) -> None:
    _note(debate, command)
    debate.discourse.publish(Contribution(MODERATOR, command.text))
    debate.record(EventName.MODERATOR_STEERING, None, text=command.text)


def _kick(debate: Flow, command: messages.Kick, now: float) -> None:
    seat = debate.roster.resolve(command.seat)
    _note(debate, command, seat)
    remove(debate, seat, now)
    debate.settle(now)


def remove(debate: Flow, seat: Seat, now: float) -> None:
    """Take a seat out of the debate for good, with its open turn."""
    if debate.turn is not None and debate.turn.participant_id == seat.participant_id:
        debate.revoke(now, REMOVED)
    debate.record(EventName.PARTICIPANT_LEFT, seat, reason=REMOVED, by="operator")
    if seat.session is not None:
        gone = messages.Error(code=ErrorCode.NOT_REGISTERED, message="the operator removed this seat")
        debate.send(seat.session, gone)
        debate.end_session(seat.session, REMOVED)
    debate.reviving.discard(seat.participant_id)
    debate.roster.ban(seat.participant_id)


def _force_turn_end(debate: Flow, command: messages.ForceTurnEnd, now: float) -> None:
    if debate.turn is None:
        raise _impossible("no turn is open")
    seat = debate.seat_of(debate.turn)
    _note(debate, command, seat)
    debate.revoke(now, "ended_by_operator")
    debate.skip(seat)
    if seat.leaving is not None:
        debate.depart(seat, seat.leaving, now)
    debate.settle(now)


def _next(debate: Flow, command: messages.Next, now: float) -> None:
    seat = debate.roster.resolve(command.seat)
    if not seat.in_rotation:
        raise _impossible(f"{seat.participant_id} cannot be given a turn: it is not in the rotation")
    _note(debate, command, seat)
    debate.schedule.next_speaker = seat.participant_id
    debate.settle(now)


def _terminate(debate: Flow, command: messages.Terminate, now: float) -> None:
    due = _due(debate, command)
    if due is not None and command.round is None and not debate.has_started:
        raise _impossible("the debate has not started: there is no round to wait for")
    reason = command.reason or "closed by the operator"
    _note(debate, command, when=command.when.value, round=due, reason=reason)
    if due is None:
        debate.finish(DebateState.FINISHED, now, reason=reason)
    else:
        debate.schedule.endings[due] = reason


def _resume(debate: Flow, command: messages.Resume, now: float) -> None:
    """§7.3: the operator has looked at each faulty seat, and says how it goes on."""
    chosen = {debate.roster.resolve(ref).participant_id: choice for ref, choice in command.seats.items()}
    if debate.state is DebateState.READY:
        if chosen:
            raise _impossible("the debate has not started: no seat is to be recovered")
        _note(debate, command)
        debate.start(now)
        debate.settle(now)
        return
    troubled = debate.roster.troubled()
    idle = chosen.keys() - {seat.participant_id for seat in troubled}
    if idle:
        raise _impossible(f"nothing is wrong with {', '.join(sorted(idle))}")
    choices = [(seat, chosen.get(seat.participant_id, Recovery.KEEP)) for seat in troubled]
    for seat, choice in choices:
        if choice in (Recovery.KEEP, Recovery.COLD) and not seat.present:
            raise _impossible(f"{seat.participant_id} is not connected: skip it, remove it, or wait for it")
    _note(debate, command, seats={seat.participant_id: choice.value for seat, choice in choices})
    for seat, choice in choices:
        _recover(debate, seat, choice, now)
    if debate.reviving:
        debate.enter(DebateState.RESUMING)
        debate.record(EventName.DEBATE_RESUMING, None, seats=sorted(debate.reviving))
    else:
        debate.resumed(now)
    debate.settle(now)


def _recover(debate: Flow, seat: Seat, choice: Recovery, now: float) -> None:
    uncertain = seat.prompt_sent is not None
    if choice is Recovery.REMOVE:
        remove(debate, seat, now)
        return
    gone = not seat.present
    debate.record(EventName.PARTICIPANT_RECOVERED, seat, choice=choice.value, gone=gone, again=uncertain)
    seat.heal()
    if choice is Recovery.SKIP:
        debate.skip(seat, gone=gone)
        return
    assert seat.session is not None
    if choice is Recovery.COLD:
        debate.reviving.add(seat.participant_id)
        mode = messages.SeatRecovery(mode=Recovery.COLD)
    else:
        mode = messages.SeatRecovery(mode=Recovery.KEEP)
    debate.send(seat.session, mode)
    if uncertain:
        # Its turn was lost to the fault: the operator has looked, so it is given again, under a new id.
        debate.schedule.next_speaker = seat.participant_id
