"""The ceiling and what is granted below it: certificates, names, wishes."""

from __future__ import annotations

from typing import Any

import pytest
from rights import FINGERPRINT, identity, rights

from arbiter import admission
from arbiter.admission import Granted
from consilium.errors import ErrorCode, PeerError
from consilium.identity import DAY
from consilium.messages import DisconnectPolicy, Reg, StateUpdate
from consilium.profile import DEFAULT_PROFILES

DROP, KEEP = DisconnectPolicy.DROP, DisconnectPolicy.KEEP_ALIVE


def test_a_certificate_has_the_rights_of_the_profile_that_it_names() -> None:
    found = admission.rights_of(identity(profile="operator"), DEFAULT_PROFILES)
    assert found.profile is DEFAULT_PROFILES["operator"]
    assert found.identity == identity(profile="operator")


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"profile": "arbiter"}, "no capability profile is called arbiter"),
        ({"profile": "Participant"}, "no capability profile is called"),
        ({"lifetime_s": 91 * DAY}, "the certificate lives 91 days; profile participant accepts 90"),
        ({"lifetime_s": 90 * DAY + 1}, "accepts 90"),
    ],
)
def test_a_certificate_outside_every_profile_has_no_rights(odd: dict[str, Any], told: str) -> None:
    with pytest.raises(PeerError, match=told) as refused:
        admission.rights_of(identity(**odd), DEFAULT_PROFILES)
    assert refused.value.code is ErrorCode.POLICY_DENIED


def test_a_lifetime_up_to_the_profiles_bound_is_accepted() -> None:
    longest = identity(lifetime_s=90 * DAY)
    assert admission.rights_of(longest, DEFAULT_PROFILES).identity is longest


@pytest.mark.parametrize(
    ("names", "name", "admitted"),
    [
        (("*",), "ada", True),
        (("ada",), "ada", True),
        (("ada",), "ada2", False),
        (("ada",), "ad", False),
        (("ada*",), "ada_deep", True),
        (("ada*",), "ada", True),
        (("ada*", "bob"), "bob", True),
        (("ada*",), "bob_ada", False),
        ((), "ada", False),
    ],
)
def test_a_name_is_a_wish_that_the_profile_grants_or_not(
    names: tuple[str, ...], name: str, admitted: bool
) -> None:
    holder = rights(names=names)
    if admitted:
        participant_id, _ = admission.admit(Reg(name=name), holder)
        assert participant_id == f"{name}_AB12CD34"
    else:
        with pytest.raises(PeerError, match="this certificate may not use the name") as refused:
            admission.admit(Reg(name=name), holder)
        assert refused.value.code is ErrorCode.POLICY_DENIED


def test_what_is_too_many_now_is_told_apart_from_what_is_never_allowed() -> None:
    few = rights(max_seats=1, max_connections=2)
    with pytest.raises(PeerError, match="has 1 seats, and may have no more") as refused:
        admission.admit(Reg(name="bob"), few, ["ada"])
    assert refused.value.code is ErrorCode.AT_CAPACITY
    with pytest.raises(PeerError, match="has 2 connections, and may have no more") as refused:
        admission.check_crowd(few, 2)
    assert refused.value.code is ErrorCode.AT_CAPACITY
    admission.check_crowd(few, 1)


def test_the_same_certificate_may_have_several_names() -> None:
    assert [admission.admit(Reg(name=name), rights())[0] for name in ("ada", "bob")] == [
        "ada_AB12CD34",
        "bob_AB12CD34",
    ]
    assert FINGERPRINT.hex().upper().startswith("AB12CD34")


WISHES: list[tuple[dict[str, Any], dict[str, Any], Granted]] = [
    # what the profile allows, what is asked for, what is granted
    ({"may_be_required": True}, {"required": True}, Granted(True, None)),
    ({"may_be_required": True}, {"required": False}, Granted(False, None)),
    ({"may_be_required": False}, {"required": True}, Granted(None, None, over_required=True)),
    ({"may_be_required": False}, {"required": False}, Granted(False, None)),
    ({"disconnect_ceiling": KEEP}, {"disconnect_policy": KEEP}, Granted(None, KEEP)),
    ({"disconnect_ceiling": KEEP}, {"disconnect_policy": DROP}, Granted(None, DROP)),
    ({"disconnect_ceiling": DROP}, {"disconnect_policy": KEEP}, Granted(None, None, over_policy=True)),
    ({"disconnect_ceiling": DROP}, {"disconnect_policy": DROP}, Granted(None, DROP)),
    (
        {"may_be_required": False, "disconnect_ceiling": KEEP},
        {"required": True, "disconnect_policy": KEEP},
        Granted(None, KEEP, over_required=True),
    ),
    (
        {"may_be_required": True, "disconnect_ceiling": DROP},
        {"required": True, "disconnect_policy": KEEP},
        Granted(True, None, over_policy=True),
    ),
    ({}, {}, Granted(None, None)),
]


@pytest.mark.parametrize(("ceiling", "wish", "granted"), WISHES)
def test_a_wish_is_granted_up_to_the_ceiling_and_a_downgrade_always(
    ceiling: dict[str, Any], wish: dict[str, Any], granted: Granted
) -> None:
    assert admission.update(StateUpdate(**wish), "ada", rights(**ceiling)) == granted
    if len(wish) == 2:
        assert admission.admit(Reg(name="ada", **wish), rights(**ceiling))[1] == granted


def test_a_registration_asks_for_both_by_default() -> None:
    assert admission.admit(Reg(name="ada"), rights())[1] == Granted(False, DROP)


def test_a_session_may_name_itself_and_nobody_else() -> None:
    assert admission.update(StateUpdate(name="ada", required=False), "ada", rights()).required is False
    with pytest.raises(PeerError) as refused:
        admission.update(StateUpdate(name="bob", required=False), "ada", rights())
    assert refused.value.code is ErrorCode.NOT_OWNER
