"""Arbiter and wrappers together, in memory: whatever overtakes what, a good debate goes well."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from pair import Pair

from arbiter.debate import events as happened
from arbiter.debate.effects import Channel
from consilium import messages as m
from consilium.errors import ErrorCode
from consilium.messages import DebateState
from consilium.records import EventName, EventRecord, TurnOutcome, TurnRecord
from wrapper import events

NAMES = ("ada", "bob", "cyn")


def hold(pair: Pair, pick: st.DataObject | None = None) -> None:
    """Let everything happen that can, in an order that ``pick`` draws, or oldest first."""
    for _ in range(3000):
        moves = pair.moves()
        if not moves:
            return
        pair.move(*(pick.draw(st.sampled_from(moves)) if pick else moves[0]))
    raise AssertionError("the debate does not come to an end")


def test_a_debate_runs_to_its_cap() -> None:
    pair = Pair(NAMES, caps={"max_rounds": 2}, opening="sealed")
    hold(pair)
    assert pair.debate.state is DebateState.STOPPED_BY_CAP
    assert [seat.outcome and seat.outcome.outcome for seat in pair.seats.values()] == ["STOPPED_BY_CAP"] * 3


@settings(max_examples=60, deadline=None)
@given(data=st.data(), opening=st.sampled_from(["sealed", "open"]))
def test_no_order_of_delivery_loses_a_speech_or_makes_a_skip_of_it(data: st.DataObject, opening: str) -> None:
    pair = Pair(NAMES, caps={"max_rounds": 3}, opening=opening)
    hold(pair, data)
    assert pair.debate.state is DebateState.STOPPED_BY_CAP
    assert pair.refusals == []
    turns = [entry for entry in pair.record if isinstance(entry, TurnRecord)]
    assert [turn.outcome for turn in turns] == [TurnOutcome.SPEECH] * 9
    for place, name in enumerate(NAMES):
        # Every phase here is OPENING: where it is sealed, a round is heard once it is complete.
        until = 7 + place if opening == "open" else 7
        due = [turn.text for turn in turns if turn.turn_id < until]
        assert pair.seats[name].heard == [text for text in due if not str(text).startswith(name)]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_revoked_turn_is_over_at_both_ends_whenever_the_news_arrives(data: st.DataObject) -> None:
    pair = Pair(NAMES, caps={"max_rounds": 2})
    forced = False
    for _ in range(3000):
        moves = pair.moves()
        if not moves:
            break
        if not forced and pair.debate.turn is not None and data.draw(st.booleans()):
            pair.tell(operator(m.ForceTurnEnd()))
            forced = True
        pair.move(*data.draw(st.sampled_from(pair.moves())))
    assert pair.debate.state is DebateState.STOPPED_BY_CAP
    assert all(refusal.code == "TURN_MISMATCH" for refusal in pair.refusals)
    turns = [entry for entry in pair.record if isinstance(entry, TurnRecord)]
    assert len({turn.turn_id for turn in turns}) == len(turns)
    lost = [turn for turn in turns if turn.outcome is TurnOutcome.FORCED]
    assert len(lost) == int(forced)
    for seat in pair.seats.values():
        assert seat.outcome is not None
        assert seat.outcome.outcome == "STOPPED_BY_CAP"
        assert not any(f"in turn {turn.turn_id}" in text for turn in lost for text in seat.heard)


def test_a_cold_restart_is_asked_for_done_and_reported() -> None:
    pair = Pair(NAMES, caps={"max_rounds": 1})
    while pair.seats["ada"].running is None:
        pair.move(*pair.moves()[0])
    pair.seats["ada"].running = None
    pair.feel(
        pair.seats["ada"],
        failed(turn=1),
    )
    hold(pair)
    assert state(pair) is DebateState.PAUSED
    pair.tell(operator(m.Resume(seats={"ada": m.Recovery.COLD})))
    while pair.moves():
        pair.move(*pair.moves()[0])
    assert state(pair) is DebateState.RESUMING
    pair.feel(pair.seats["ada"], restarted())
    hold(pair)
    assert pair.debate.state is DebateState.STOPPED_BY_CAP


def state(pair: Pair) -> DebateState:
    return pair.debate.state


def operator(command: m.Resume | m.ForceTurnEnd) -> happened.Operated:
    return happened.Operated("operator", "m", command)


def failed(turn: int) -> events.Failed:
    return events.Failed(turn, m.Fault.CLIENT_ERROR, m.PromptSent.MAYBE, "exit 1")


def restarted() -> events.Restarted:
    return events.Restarted()


def test_a_quota_is_heard_of_at_both_ends_and_what_was_refused_is_on_the_record() -> None:
    pair = Pair(NAMES, caps={"max_rounds": 1})
    while pair.seats["ada"].running is None:
        pair.move(*pair.moves()[0])
    turn, back, refused = pair.seats["ada"].running.turn_id, "2026-11-30T18:30:00Z", ("Bash: touch x",)
    pair.seats["ada"].running = None
    used_up = events.Failed(turn, m.Fault.QUOTA, m.PromptSent.YES, "exit 1", resets_at=back, refused=refused)
    pair.feel(pair.seats["ada"], used_up)
    hold(pair)
    assert (pair.debate.state, pair.debate.reason) == (DebateState.PAUSED, "quota_exhausted")
    (failed,) = [entry for entry in pair.record if isinstance(entry, TurnRecord)]
    assert (failed.outcome, failed.fault, failed.refused) == (TurnOutcome.FAILED, m.Fault.QUOTA, refused)
    assert pair.debate.roster.resolve("ada").resets_at == back


# --- a person among them -----------------------------------------------------------------------------


def choose(pair: Pair, name: str, event: events.SeatEvent) -> None:
    """What the person at a seat does with their turn, or outside of one."""
    seat = pair.seats[name]
    if isinstance(event, events.Skipped):
        seat.running = None
    pair.feel(seat, event)


def until_it_is_the_turn_of(pair: Pair, name: str) -> None:
    while pair.seats[name].running is None:
        pair.move(*pair.moves()[0])


def skip(pair: Pair, name: str) -> None:
    running = pair.seats[name].running
    assert running is not None
    choose(pair, name, events.Skipped(running.turn_id))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_persons_skips_are_skips_in_whatever_order_they_arrive(data: st.DataObject) -> None:
    pair = Pair(NAMES, caps={"max_rounds": 2})
    for _ in range(3000):
        running = pair.seats["bob"].running
        moves = [move for move in pair.moves() if move[:2] != ("bob", "answer")]
        if running is not None and (not moves or data.draw(st.booleans())):
            choose(pair, "bob", events.Skipped(running.turn_id))
        elif moves:
            pair.move(*data.draw(st.sampled_from(moves)))
        else:
            break
    assert pair.debate.state is DebateState.STOPPED_BY_CAP
    turns = [entry for entry in pair.record if isinstance(entry, TurnRecord)]
    assert [turn.outcome for turn in turns if turn.participant_id.startswith("bob")] == [TurnOutcome.SKIP] * 2
    skips = [e for e in pair.record if isinstance(e, EventRecord) and e.event is EventName.HUMAN_SKIP]
    # The last HUMAN_SKIP may come when the debate is over; nothing else is ever refused.
    assert len(skips) + len(pair.refusals) == 2
    assert {refusal.code for refusal in pair.refusals} <= {ErrorCode.INVALID_STATE}


def test_the_debate_goes_on_without_who_is_away_and_waits_again_for_who_is_back() -> None:
    pair = Pair(NAMES, caps={"max_rounds": 3})
    until_it_is_the_turn_of(pair, "bob")
    bob = next(seat for seat in pair.debate.roster if seat.name == "bob")
    assert bob.required
    choose(pair, "bob", events.Away())
    skip(pair, "bob")
    until_it_is_the_turn_of(pair, "bob")
    assert (bob.required, bob.disconnect_policy) == (False, m.DisconnectPolicy.DROP)
    choose(pair, "bob", events.Back())
    choose(pair, "bob", events.StatusWanted())
    pair.answer(pair.seats["bob"])
    while bob.disconnect_policy is m.DisconnectPolicy.DROP:
        pair.move(*pair.moves()[0])
    assert bob.required, "the roster had planned it so"
    hold(pair)
    assert pair.debate.state is DebateState.STOPPED_BY_CAP


def test_a_person_who_leaves_has_skipped_and_is_no_fault() -> None:
    pair = Pair(NAMES, caps={"max_rounds": 3})
    until_it_is_the_turn_of(pair, "bob")
    choose(pair, "bob", events.Away())
    choose(pair, "bob", events.Leave("user_quit"))
    for _ in range(50):
        if not pair.seats["bob"].up[Channel.CONTROL]:
            break
        pair.move("bob", "up", Channel.CONTROL)
    last = [entry for entry in pair.record if isinstance(entry, TurnRecord)][-1]
    assert (last.participant_id[:3], last.outcome, last.detail) == ("bob", TurnOutcome.SKIP, "the seat left")
    assert pair.debate.state is DebateState.RUNNING, "who is away is not waited for"
