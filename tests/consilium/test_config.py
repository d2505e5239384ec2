from __future__ import annotations

from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from consilium.config import Caps, Council, Limits, Participant, Roster, RosterSeat, Section, TurnPolicy
from consilium.messages import MAX_SPEECH_BYTES, DisconnectPolicy


def council(**keys: Any) -> Council:
    """A council as `consilium.settings` makes it, from plain values, strictly."""
    plain = {"topic": "Wrap or rewrite?", "caps": {"max_rounds": 3}} | keys
    return Council.model_validate_json(orjson.dumps(plain), strict=True)


def seats(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


def refused(match: str, **keys: Any) -> None:
    with pytest.raises(ValidationError, match=match):
        council(**keys)


# --- the whole ---------------------------------------------------------------------------------------


def test_a_topic_and_one_cap_make_a_council() -> None:
    small = council()
    assert small.turn_policy is TurnPolicy.ROUND_ROBIN
    assert small.opening == "sealed"
    assert small.role_visible
    assert small.identity_visible
    assert small.rebuttal_rounds == 1
    assert small.limits == Limits()
    assert small.roster == Roster()


@pytest.mark.parametrize("missing", ["topic", "caps"])
def test_topic_and_caps_are_mandatory(missing: str) -> None:
    whole = {"topic": "t", "caps": {"max_rounds": 1}}
    Council.model_validate(whole)
    del whole[missing]
    with pytest.raises(ValidationError, match=rf"{missing}\n +Field required"):
        Council.model_validate(whole)


@pytest.mark.parametrize(
    "keys",
    [
        {"extra": 1},
        {"caps": {"max_rounds": 1, "extra": 1}},
        {"limits": {"extra": 1}},
        {"roster": {"extra": 1}},
        {"roster": {"participants": [{"name": "a", "extra": 1}]}},
        {"participants": [{"name": "a", "extra": 1}]},
    ],
)
def test_an_unknown_key_is_refused_in_every_section(keys: dict[str, Any]) -> None:
    refused("Extra inputs are not permitted", **keys)


def test_every_section_is_frozen_and_forbids_the_unknown() -> None:
    for section in (Council, Caps, Limits, Roster, RosterSeat, Participant):
        assert issubclass(section, Section)
        assert section.model_config["frozen"] is True
        assert section.model_config["extra"] == "forbid"


# --- caps (§5.7) -------------------------------------------------------------------------------------


def test_a_debate_without_any_cap_is_refused() -> None:
    refused("at least one cap is mandatory: max_rounds, max_tokens, max_seconds or max_usd", caps={})


@pytest.mark.parametrize("cap", ["max_rounds", "max_tokens", "max_seconds", "max_usd"])
def test_any_one_cap_will_do_and_must_be_above_zero(cap: str) -> None:
    caps = council(caps={cap: 1}).caps
    assert caps.model_dump(exclude_none=True) == {cap: 1}
    for wrong in (0, -1, True, "1", None, [1]):
        refused(cap if wrong is not None else "at least one cap", caps={cap: wrong})


@pytest.mark.parametrize("cap", ["max_rounds", "max_tokens"])
def test_what_is_counted_is_a_whole_number(cap: str) -> None:
    refused("valid integer", caps={cap: 1.5})


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_no_cap_is_infinite(value: float) -> None:
    for cap in ("max_seconds", "max_usd"):
        with pytest.raises(ValidationError):
            Caps.model_validate({cap: value})


# --- limits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "lowest", "highest"),
    [
        ("speech_bytes", 256, MAX_SPEECH_BYTES),
        ("contribution_chars", 100, MAX_SPEECH_BYTES),
        ("max_seats", 1, 4096),
    ],
)
def test_a_size_stays_within_its_range(key: str, lowest: int, highest: int) -> None:
    for value in (lowest, highest):
        assert getattr(council(limits={key: value}).limits, key) == value
    for wrong in (lowest - 1, highest + 1, float(lowest), True, str(lowest)):
        refused(key, limits={key: wrong})


@pytest.mark.parametrize(
    "key", ["turn_seconds", "first_byte_seconds", "stall_seconds", "heartbeat_seconds", "max_pause_seconds"]
)
def test_a_time_is_above_zero_and_at_most_a_week(key: str) -> None:
    for value in (0.25, 7 * 24 * 3600):
        assert getattr(council(limits={key: value}).limits, key) == value
    for wrong in (0, -1, 7 * 24 * 3600 + 1, True, "5"):
        refused(key, limits={key: wrong})


# --- roster (§7) -------------------------------------------------------------------------------------


def test_a_static_roster_that_is_not_given_is_made_of_the_participants() -> None:
    made = council(participants=seats("a", "b")).roster
    assert made.participants == (RosterSeat(name="a"), RosterSeat(name="b"))
    assert made.participants[0].required
    assert made.participants[0].disconnect_policy is DisconnectPolicy.KEEP_ALIVE
    assert made.awaited == {"a", "b"}


def test_a_roster_that_is_given_stays_as_it_is() -> None:
    roster = {"participants": [{"name": "a", "required": False, "disconnect_policy": "drop"}, {"name": "b"}]}
    given = council(participants=seats("a"), roster=roster).roster
    assert [seat.name for seat in given.participants] == ["a", "b"]
    assert given.participants[0].disconnect_policy is DisconnectPolicy.DROP
    assert given.awaited == {"b"}


def test_a_dynamic_roster_is_not_filled() -> None:
    roster = council(participants=seats("a", "b"), roster={"mode": "dynamic", "required_names": ["c"]}).roster
    assert roster.participants == ()
    assert roster.awaited == {"c"}


def test_nobody_is_awaited_when_the_start_waits_for_nobody() -> None:
    roster = {"wait_for_required_at_start": False, "required_names": ["a"], "participants": seats("b")}
    assert council(roster=roster).roster.awaited == frozenset()


def test_a_static_roster_cannot_await_a_name_that_it_would_not_admit() -> None:
    refused(
        r"roster.required_names: no seat is planned for c, d",
        participants=seats("a"),
        roster={"required_names": ["d", "a", "c"]},
    )


def test_more_seats_than_max_seats_cannot_be_planned() -> None:
    crowd = seats("a", "b", "c")
    council(participants=crowd, limits={"max_seats": 3})
    wanted = "3 seats are planned, but limits.max_seats is 2"
    refused(wanted, participants=crowd, limits={"max_seats": 2})
    refused(wanted, roster={"participants": crowd}, limits={"max_seats": 2})
    refused(wanted, participants=crowd, roster={"mode": "dynamic"}, limits={"max_seats": 2})


def test_two_seats_of_one_name_are_refused() -> None:
    refused("participants: duplicate name a, b", participants=seats("b", "a", "b", "a", "c"))
    refused("roster.participants: duplicate name a", roster={"participants": seats("a", "a")})


# --- participants (§5.3) -----------------------------------------------------------------------------


def test_a_participant_needs_only_a_name() -> None:
    (seat,) = council(participants=seats("a")).participants
    assert (seat.adapter, seat.preset, seat.harness_profile) == ("native", "llm", "restricted")
    assert seat.role is None
    assert seat.role_prompt is None


def test_a_role_is_named_or_written_in_place_but_not_both() -> None:
    for role in ({"role": "sceptic"}, {"role_prompt": "Doubt."}, {}):
        council(participants=[{"name": "a"} | role])
    refused("give one of them", participants=[{"name": "a", "role": "sceptic", "role_prompt": "Doubt."}])


@pytest.mark.parametrize("key", ["role", "preset"])
@pytest.mark.parametrize(
    "value",
    [
        "",
        "../x",
        "a/b",
        "a\\b",
        ".",
        "..",
        ".hidden",
        "-x",
        "A",
        "a b",
        "a\n",
        "\u0430",
        "\uff41",
        "a\0",
        "a" * 65,
    ],
)
def test_a_name_that_becomes_a_file_cannot_leave_its_folder(key: str, value: str) -> None:
    refused(key, participants=[{"name": "a", key: value}])


@pytest.mark.parametrize("value", ["a", "devils-advocate", "x_1", "0", "a" * 64])
def test_a_role_is_named_in_lower_case(value: str) -> None:
    (seat,) = council(participants=[{"name": "a", "role": value}]).participants
    assert seat.role == value


def test_a_preset_may_have_dots() -> None:
    (seat,) = council(participants=[{"name": "a", "preset": "deepseek.coder"}]).participants
    assert seat.preset == "deepseek.coder"


def test_a_role_prompt_is_bounded() -> None:
    council(participants=[{"name": "a", "role_prompt": "x" * 20_000}])
    for text in ("", "x" * 20_001):
        refused("role_prompt", participants=[{"name": "a", "role_prompt": text}])


@pytest.mark.parametrize("name", ["", "A", "a-b", "a\n", "\u0430", "a" * 65])
def test_a_participant_has_a_logical_name(name: str) -> None:
    refused("name", participants=seats(name))
    refused("name", roster={"participants": seats(name)})
    refused("name", roster={"mode": "dynamic", "required_names": [name]})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("turn_policy", "random"),
        ("opening", "closed"),
        ("rebuttal_rounds", -1),
        ("rebuttal_rounds", 1001),
        ("topic", ""),
    ],
)
def test_a_value_outside_its_list_or_range_is_refused(key: str, value: Any) -> None:
    refused(key, **{key: value})
