"""What a reload changes, by name, and which rights a certificate keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rights import ANY_NAME, rights

from arbiter.changes import Configured, changed, rights_now
from arbiter.debate.effects import Channel
from consilium.errors import ErrorCode, PeerError
from consilium.profile import DEFAULT_PROFILES, CapabilityProfile

if TYPE_CHECKING:
    from collections.abc import Mapping

OLD = Configured(b"leaf", b"anchors", DEFAULT_PROFILES)
PARTICIPANT, OPERATOR = ANY_NAME["participant"], ANY_NAME["operator"]
STRICTER = PARTICIPANT.model_copy(update={"burst": 1})


def configured(profiles: Mapping[str, CapabilityProfile]) -> Configured:
    return Configured(b"leaf", b"anchors", profiles)


@pytest.mark.parametrize(
    ("new", "names"),
    [
        (Configured(b"leaf", b"anchors", dict(DEFAULT_PROFILES)), ()),
        (Configured(b"other", b"anchors", DEFAULT_PROFILES), ("certificate",)),
        (Configured(b"leaf", b"other", DEFAULT_PROFILES), ("trust anchors",)),
        (
            Configured(b"leaf", b"anchors", {"participant": STRICTER, "operator": OPERATOR}),
            ("profile participant",),
        ),
        (
            Configured(b"other", b"other", {"operator": OPERATOR, "guest": PARTICIPANT}),
            ("certificate", "trust anchors", "profile guest", "profile participant"),
        ),
    ],
)
def test_what_differs_is_named_and_nothing_else(new: Configured, names: tuple[str, ...]) -> None:
    assert changed(OLD, new) == names


def test_whoever_is_still_let_in_has_the_rights_of_today() -> None:
    now = rights_now(rights(), Channel.CONTROL, "ada", configured({"participant": STRICTER}))
    assert now.profile == STRICTER
    assert now.identity == rights().identity


def narrowed(**changes: object) -> dict[str, CapabilityProfile]:
    return {"participant": PARTICIPANT.model_copy(update=changes)}


@pytest.mark.parametrize(
    ("profiles", "told"),
    [
        ({}, "no capability profile is called participant here"),
        ({"participant": OPERATOR}, "a certificate of role operator may not use this channel"),
        (narrowed(names=("bob",)), "this certificate may not use the name ada"),
        (narrowed(max_lifetime_days=0), "days; profile participant accepts 0"),
    ],
)
def test_whoever_would_not_be_let_in_again_is_refused(
    profiles: dict[str, CapabilityProfile], told: str
) -> None:
    with pytest.raises(PeerError, match=told) as refused:
        rights_now(rights(), Channel.CONTROL, "ada", configured(profiles))
    assert refused.value.code is ErrorCode.POLICY_DENIED


def test_a_connection_without_a_seat_is_judged_without_a_name() -> None:
    assert rights_now(rights(), Channel.DATA, None, configured(narrowed(names=()))).profile.names == ()
