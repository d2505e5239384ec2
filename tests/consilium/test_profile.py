"""§5.2, §14.4: what a profile entitles to."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from consilium.framing import MAX_LINE_BYTES
from consilium.messages import DisconnectPolicy
from consilium.profile import DEFAULT_PROFILES, CapabilityProfile


def participant(*names: str) -> CapabilityProfile:
    return CapabilityProfile(role="participant", names=names)


@pytest.mark.parametrize(
    ("names", "name", "allowed"),
    [
        (("claude",), "claude", True),
        (("claude",), "claude_2", False),
        (("claude",), "Claude", False),
        (("claude_*",), "claude_deep", True),
        (("claude_*",), "claude_", True),
        (("claude_*",), "claude", False),
        (("claude_*", "codex"), "codex", True),
        (("*",), "anybody", True),
        ((), "anybody", False),
        (("{id}",), "own_seat", True),
        (("{id}",), "own-seat", False),
        (("{id}",), "own_seat_2", False),
        (("{id}_*",), "own_seat_2", True),
        (("{id}_*",), "own_seat", False),
        (("{id}_*",), "own_seats", False),
    ],
)
def test_a_name_is_allowed_when_a_pattern_covers_it(
    names: tuple[str, ...], name: str, *, allowed: bool
) -> None:
    assert participant(*names).may_use(name, "own-seat") is allowed


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "**",
        "a*b",
        "*a",
        "Claude",
        "a-b",
        "a/..",
        "a\n",
        "claude*\n",
        "a" * 65,
        "a" * 64 + "*",
        "{id}*",
        "a_{id}",
        "{name}",
    ],
)
def test_a_pattern_that_is_no_name_nor_prefix_is_refused(pattern: str) -> None:
    with pytest.raises(ValidationError):
        participant(pattern)


@pytest.mark.parametrize("pattern", ["*", "a", "a*", "_*", "a" * 64, "a" * 63 + "*"])
def test_a_name_or_prefix_is_a_pattern(pattern: str) -> None:
    assert participant(pattern).names == (pattern,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("role", "arbiter"),
        ("max_message_bytes", 1023),
        ("max_message_bytes", MAX_LINE_BYTES + 1),
        ("messages_per_second", 0),
        ("messages_per_second", float("inf")),
        ("messages_per_second", float("nan")),
        ("burst", 0),
        ("max_lifetime_days", 0),
        ("max_lifetime_days", 91),
        ("may_shout", True),
    ],
)
def test_a_profile_out_of_bounds_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        CapabilityProfile.model_validate({"role": "participant", field: value})


def test_what_a_profile_does_not_say_it_does_not_grant() -> None:
    bare = CapabilityProfile(role="participant")
    assert not bare.may_use("anybody", "anybody")
    assert not bare.may_be_required
    assert not bare.may_ask_status
    assert bare.disconnect_ceiling is DisconnectPolicy.DROP


def test_a_profile_cannot_be_changed_after_the_fact() -> None:
    with pytest.raises(ValidationError):
        participant("a").may_be_required = True  # type: ignore[misc]  # that it is refused is the point


def test_a_default_participant_keeps_its_place_but_holds_nobody_up() -> None:
    default = DEFAULT_PROFILES["participant"]
    assert default.role == "participant"
    assert default.may_use("claude", "claude")
    assert default.may_use("claude_sonnet_deep", "claude")
    assert not default.may_use("sceptic", "claude")
    assert default.disconnect_ceiling is DisconnectPolicy.KEEP_ALIVE
    assert not default.may_be_required


def test_a_default_operator_has_no_name_at_the_table() -> None:
    default = DEFAULT_PROFILES["operator"]
    assert default.role == "operator"
    assert not default.may_use("moderator", "moderator")
    assert default.may_ask_status


def test_there_is_a_default_for_each_role_and_no_other() -> None:
    assert {name: profile.role for name, profile in DEFAULT_PROFILES.items()} == {
        "participant": "participant",
        "operator": "operator",
    }
