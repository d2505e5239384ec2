"""A debate rebuilt from its record is the debate that wrote it, as far as it can outlive its connections."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from any_debate import AnyDebate
from hypothesis import settings
from hypothesis.stateful import rule
from playbook import Playbook, frozen, participant

from arbiter.debate import Debate
from arbiter.debate.effects import Append, Effect
from arbiter.debate.repetition import Repetition, Score
from arbiter.debate.restore import RESTARTED, UNMOVED, restore
from arbiter.debate.roster import Standing
from arbiter.debate.states import TERMINAL
from consilium.errors import TranscriptError
from consilium.messages import (
    DebateState,
    DisconnectPolicy,
    Fault,
    ForceTurnEnd,
    Inject,
    Kick,
    Next,
    Pause,
    Phase,
    PromptSent,
    Recovery,
    Resume,
    SetPhase,
    SetTopic,
    Terminate,
    Usage,
    When,
)
from consilium.records import AnyEntry, EventName, EventRecord, HeaderRecord, TurnOutcome, TurnRecord


def told(effects: list[Effect]) -> list[AnyEntry]:
    return [effect.entry for effect in effects if isinstance(effect, Append)]


def rebuilt(play: Playbook) -> Debate:
    """The debate as its record alone tells it."""
    header, *rest = told(play.effects)
    assert isinstance(header, HeaderRecord)
    return restore(header, [(0.0, entry) for entry in rest])


def scored(said: Repetition) -> Score | None:
    """The score once everything has been read; ``said`` stays as it is."""
    everything = copy.deepcopy(said)
    while everything._unread:
        everything.read()
    return everything.latest


def essence(debate: Debate) -> dict[str, Any]:
    """What must survive a restart: everything but connections, times and what was never bound."""
    return {
        "topic": debate.topic,
        "phase": debate.phase,
        "turn_counter": debate.turn_counter,
        "open": debate.turn and (debate.turn.turn_id, debate.turn.participant_id, debate.turn.heard),
        "discourse": frozen(debate.discourse),
        "schedule": frozen(debate.schedule),
        "had_turn": frozen(debate._had_turn),
        "passed_over": frozen(debate._passed_over),
        "last": debate._last,
        "named": debate._named,
        "rounds": debate.meter.rounds,
        "tokens": debate.meter.tokens,
        "usd": debate.meter.usd,
        "unknown": debate.meter.unknown_turns,
        "removed": sorted(debate.roster._removed),
        "numbered": debate.roster._numbered,
        "pseudonyms": frozen(debate.roster._pseudonyms),
        "seats": [
            {
                **frozen(seat),
                **dict.fromkeys(("session", "bound", "active_at", "leaving")),
                "said": frozen(scored(seat.said)),
                "drift": seat.drift.overlap(debate.topic),
            }
            for seat in debate.roster.joined()
        ],
    }


def test_an_eventful_debate_is_told_as_it_was() -> None:
    play = Playbook(opening="sealed", turn_policy="most_recently_contradicted", identity_visible=False)
    ada, bob, cyn = play.everybody_joins()
    play.commands(SetPhase(phase=Phase.REBUTTAL, when=When.ROUND_END))
    play.reports(ada, EventName.HUMAN_SKIP)
    play.speaks(ada, "I ask cyn.", Usage(tokens_in=5, tokens_out=6, usd=0.1))
    play.commands(Inject(text="Mind the cost."))
    play.fails(cyn, PromptSent.YES)
    play.commands(Resume())
    play.speaks(cyn, "ada is wrong.")
    play.commands(ForceTurnEnd())
    play.updates(ada, required=False, disconnect_policy=DisconnectPolicy.DROP)
    play.commands(Pause())
    play.commands(SetTopic(topic="Another?"))
    play.commands(Resume())
    play.commands(Next(seat=ada))
    play.is_lost(bob)
    play.joins(bob, "bob-again")
    assert essence(rebuilt(play)) == essence(play.debate)
    play.commands(Resume(seats={"bob": Recovery.SKIP}))
    play.commands(Kick(seat="cyn"))
    play.leaves(ada)
    play.commands(Terminate(when=When.ROUND_END))
    assert essence(rebuilt(play)) == essence(play.debate)


def test_the_running_time_is_told_by_the_records_own_times() -> None:
    play = Playbook()
    _ada, *_ = play.everybody_joins()
    first = len(told(play.effects))
    play.commands(Pause())
    header, *rest = told(play.effects)
    assert isinstance(header, HeaderRecord)
    times = [100.0] * (first - 1) + [130.0] * (len(rest) - first + 1)
    assert restore(header, list(zip(times, rest, strict=True))).meter.elapsed(1e9) == 30.0


def test_after_a_restart_the_debate_is_paused_and_waits_for_every_seat() -> None:
    play = Playbook()
    ada, _bob, _ = play.everybody_joins()
    play.speaks(ada, "A1")
    debate = rebuilt(play)
    entries = told(debate.restart(RESTARTED, 50.0))
    assert debate.state is DebateState.PAUSED
    assert debate.reason == RESTARTED
    (turn,) = [entry for entry in entries if isinstance(entry, TurnRecord)]
    assert (turn.turn_id, turn.outcome, turn.text) == (2, TurnOutcome.LOST, None)
    faults = {seat.name: (seat.fault, seat.prompt_sent) for seat in debate.roster}
    assert faults == {
        "ada": (RESTARTED, None),
        "bob": (RESTARTED, PromptSent.MAYBE),
        "cyn": (RESTARTED, None),
    }
    assert [entry.event for entry in entries if entry.kind == "event"] == [
        EventName.ARBITER_RESTARTED,
        *[EventName.PARTICIPANT_FAULT] * 3,
        EventName.DEBATE_PAUSED,
    ]


def test_the_seats_come_back_and_the_operator_resumes_where_it_was() -> None:
    play = Playbook()
    ada, _bob, _ = play.everybody_joins()
    play.speaks(ada, "A1")
    again = Playbook()
    again.debate = rebuilt(play)
    again.effects = [*play.effects, *again.debate.restart(RESTARTED, again.now)]
    for name in ("ada", "bob", "cyn"):
        again.joins(name, f"{name}-2")
    assert again.debate.state is DebateState.PAUSED
    again.commands(Resume())
    assert again.was_given_the_floor("bob-2")
    assert again.turn == 3
    assert again.heard("bob-2") == [(participant("ada"), "A1")]


def test_a_debate_that_had_not_begun_waits_again() -> None:
    play = Playbook()
    play.joins("ada")
    debate = rebuilt(play)
    debate.restart(RESTARTED, 0.0)
    assert debate.state is DebateState.WAITING_QUORUM
    assert debate.roster.missing() == ["ada", "bob", "cyn"]


def test_a_debate_that_had_ended_stays_ended() -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(Terminate(reason="enough"))
    debate = rebuilt(play)
    assert (debate.state, debate.reason) == (DebateState.FINISHED, "enough")


def test_a_seat_that_was_faulty_keeps_its_own_reason() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada, PromptSent.MAYBE, 812, fault=Fault.QUOTA, resets_at="3pm")
    debate = rebuilt(play)
    debate.restart(RESTARTED, 0.0)
    seat = debate.roster.resolve("ada")
    assert (seat.fault, seat.prompt_sent) == ("quota: exit 1", PromptSent.MAYBE)
    assert seat.resets_at == "3pm"
    assert (seat.partial_bytes, seat.active_at) == (812, None), "when it was heard of, no record tells"


def test_an_absent_seat_is_not_waited_for() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.updates(ada, required=False)
    play.leaves(ada)
    debate = rebuilt(play)
    debate.restart(RESTARTED, 0.0)
    assert debate.roster.resolve("ada").standing is Standing.ABSENT
    play.joins("ada", "ada-again")
    assert essence(rebuilt(play)) == essence(play.debate)
    assert rebuilt(play).roster.resolve("ada").standing is Standing.ACTIVE


def test_what_tells_no_debate_is_refused() -> None:
    play = Playbook()
    play.everybody_joins()
    play.skips("ada")
    header, *rest = told(play.effects)
    assert isinstance(header, HeaderRecord)
    with pytest.raises(TranscriptError, match="second header"):
        restore(header, [(0.0, header)])
    ended = next(entry for entry in rest if isinstance(entry, TurnRecord))
    with pytest.raises(TranscriptError, match="without having begun"):
        restore(header, [(0.0, ended)])
    nobody = EventRecord(event=EventName.PARTICIPANT_UPDATED, participant_id=participant("eve"))
    empty = EventRecord(event=EventName.TOPIC_CHANGED)
    for entry in (nobody, empty):
        with pytest.raises(TranscriptError, match="tells no debate"):
            restore(header, [(0.0, entry)])


def test_the_events_that_move_nothing_are_these() -> None:
    assert {
        EventName.HUMAN_SKIP,
        EventName.PARTICIPANT_MEMORY_LOST,
        EventName.CAP_REACHED,
        EventName.ARBITER_RESTARTED,
        EventName.PAUSE_OVERDUE,
        EventName.USAGE_UNREPORTED,
    } == UNMOVED


class AnyRestoredDebate(AnyDebate):
    """At any moment of any debate, the record alone tells where it stands."""

    @rule()
    def compare(self) -> None:
        live = self.play.debate
        if live.state is DebateState.ERROR:
            return  # the record failed: it could not say so
        told_debate = rebuilt(self.play)
        assert essence(told_debate) == essence(live)
        if live.state in TERMINAL | {DebateState.RUNNING, DebateState.PAUSED}:
            assert told_debate.state is live.state
            assert told_debate.reason == live.reason


TestAnyRestoredDebate = pytest.mark.timeout(300)(AnyRestoredDebate.TestCase)
TestAnyRestoredDebate.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


def test_a_seat_that_was_kept_without_having_lost_a_turn_is_not_called_next() -> None:
    play = Playbook()
    play.everybody_joins()
    play.is_lost("cyn")
    play.joins("cyn", "cyn-again")
    play.commands(Resume())
    assert rebuilt(play).schedule.next_speaker is None
    assert essence(rebuilt(play)) == essence(play.debate)


def test_a_seat_that_was_lost_before_the_start_keeps_its_place() -> None:
    play = Playbook()
    play.joins("ada")
    play.is_lost("ada")
    assert essence(rebuilt(play)) == essence(play.debate)
    assert [seat.name for seat in rebuilt(play).roster.joined()] == ["ada"]


def test_a_seat_that_was_removed_before_it_ever_joined_stays_removed() -> None:
    play = Playbook()
    play.registers("ada")
    play.commands(Kick(seat="ada"))
    assert essence(rebuilt(play)) == essence(play.debate)
    assert rebuilt(play).roster._removed == {participant("ada")}
