"""`wrapper.adapters.chats` and `invocation.derive`: pure decisions about what a client printed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.messages import MAX_COUNT, Usage
from wrapper.adapters.chats import Mismatch, answered_in, began_anew, is_id, usage_of
from wrapper.adapters.invocation import derive
from wrapper.adapters.parts import Chat, Counter, Derived
from wrapper.adapters.reading import Reading

TOLD_SAME = Chat(id="told", turn="same")
TOLD_FORK = Chat(id="told", turn="fork")
CHOSEN_SAME = Chat(id="chosen", turn="same")
CHOSEN_FORK = Chat(id="chosen", turn="fork")

RIGHT = [
    # rule, chat before, chosen by us, told by the client
    (TOLD_SAME, None, None, "c1"),
    (TOLD_SAME, "c1", None, "c1"),
    (TOLD_FORK, None, None, "c1"),
    (TOLD_FORK, "c1", None, "c2"),
    (CHOSEN_SAME, None, "c1", "c1"),
    (CHOSEN_SAME, "c1", None, "c1"),
    (CHOSEN_FORK, None, "c1", "c1"),
    (CHOSEN_FORK, "c1", "c2", "c2"),
]

WRONG = [
    (TOLD_SAME, "c1", None, "c2", "in the chat c2, not in c1"),
    (TOLD_FORK, "c1", None, "c1", "in the chat c1 itself, not in a copy"),
    (CHOSEN_SAME, None, "c1", "c2", "in the chat c2, not in c1"),
    (CHOSEN_SAME, "c1", None, "c2", "in the chat c2, not in c1"),
    (CHOSEN_FORK, "c1", "c2", "c1", "in the chat c1, not in c2"),
    *(
        (rule, "c1", None, said, "does not say")
        for rule in (TOLD_SAME, TOLD_FORK)
        for said in (None, "", "-x")
    ),
]


@pytest.mark.parametrize(("rule", "had", "chosen", "said"), RIGHT)
def test_a_turn_was_answered_in_the_seats_chat(
    rule: Chat, had: str | None, chosen: str | None, said: str
) -> None:
    assert answered_in(rule, said, had=had, chosen=chosen) == said


@pytest.mark.parametrize(("rule", "had", "chosen", "said", "words"), WRONG)
def test_a_turn_was_answered_elsewhere(
    rule: Chat, had: str | None, chosen: str | None, said: str | None, words: str
) -> None:
    with pytest.raises(Mismatch, match=words):
        answered_in(rule, said, had=had, chosen=chosen)


@pytest.mark.parametrize("said", ["--resume", "../x", "a b", "a\n", "", None, "x" * 129])
def test_what_could_be_something_else_where_it_stands_is_no_id(said: str | None) -> None:
    assert not is_id(TOLD_SAME, said)


def reading(**counters: float) -> Reading:
    return Reading("c1", "hello", "m", counters, None, ())  # type: ignore[arg-type]  # names of counters


def test_a_cumulative_counter_is_told_as_what_this_turn_added() -> None:
    cumulative: tuple[Counter, ...] = ("tokens_in", "usd")
    now = reading(tokens_in=306, tokens_out=13, usd=0.0021)
    assert usage_of(now, cumulative, {"tokens_in": 203, "usd": 0.0014}) == Usage(
        tokens_in=103, tokens_out=13, usd=0.0007, model="m"
    )


def test_a_chat_that_was_begun_counts_from_nothing_and_an_unknown_past_makes_unknown() -> None:
    cumulative: tuple[Counter, ...] = ("tokens_in",)
    assert usage_of(reading(tokens_in=101), cumulative, None).tokens_in == 101
    assert usage_of(reading(tokens_in=101), cumulative, {}).tokens_in is None
    assert usage_of(reading(tokens_in=101), cumulative, {"tokens_in": 102}).tokens_in is None
    assert usage_of(reading(), cumulative, {"tokens_in": 1}).tokens_in is None
    assert usage_of(reading(tokens_in=2 * MAX_COUNT), (), None).tokens_in is None


def test_a_counter_that_shrank_is_another_chats_where_nothing_else_tells() -> None:
    for rule in (TOLD_SAME, CHOSEN_SAME, CHOSEN_FORK):
        assert not began_anew(rule, ("usd",), {"usd": 0.1}, {"usd": 0.2})
    assert began_anew(TOLD_FORK, ("usd",), {"usd": 0.1}, {"usd": 0.2})
    assert not began_anew(TOLD_FORK, ("usd",), {"usd": 0.2}, {"usd": 0.2})
    assert not began_anew(TOLD_FORK, (), {"usd": 0.1}, {"usd": 0.2})
    assert not began_anew(TOLD_FORK, ("usd",), {}, {"usd": 0.2})
    assert not began_anew(TOLD_FORK, ("usd",), {"usd": 0.1}, {})


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(min_value=0, max_value=50), min_size=1, max_size=20))
def test_what_the_turns_cost_adds_up_to_what_the_chat_cost(costs: list[float]) -> None:
    total, told = 0.0, 0.0
    before: dict[Counter, float] | None = None
    for cost in costs:
        total += cost
        usage = usage_of(reading(usd=total), ("usd",), before)
        assert usage.usd is not None
        assert usage.usd >= 0
        told += usage.usd
        before = {"usd": total}
    assert told == pytest.approx(total, abs=1e-6)


RULE = Derived(argv=("models",), each="/list", drop=("a", "b"), set={"c": [], "d": False})


def test_a_file_that_the_client_prints_is_changed_in_every_member() -> None:
    printed = b'{"list": [{"a": 1, "c": 2, "e": 3}, {"b": 1}], "rest": 7}'
    assert json.loads(derive(printed, RULE)) == {
        "list": [{"c": [], "d": False, "e": 3}, {"c": [], "d": False}],
        "rest": 7,
    }


@pytest.mark.parametrize("printed", [b"", b"{}", b"[]", b'{"list": {}}', b'{"list": [1]}', b"\xff"])
def test_what_has_another_form_is_refused(printed: bytes) -> None:
    with pytest.raises(ValueError, match=r"list|Expecting|decode"):
        derive(printed, RULE)
