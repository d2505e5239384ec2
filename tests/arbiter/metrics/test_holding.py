"""What an Arbiter goes by, and how long it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from certificates import clock

from arbiter.changes import Configured
from arbiter.metrics.holding import OWN, Holds, certificates, crls
from pki.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class List:
    issuer: str
    this_update: float
    next_update: float


@dataclass(frozen=True)
class Lists:
    lists: tuple[List, ...]


@dataclass(frozen=True)
class WithLists(Configured):
    revocations: Any = None


def test_the_own_certificate_and_each_anchor_by_its_name(tmp_path: Path) -> None:
    own = Authority.create(tmp_path / "certs").issue("arbiter", profile="arbiter", dns=["localhost"], days=5)
    held = {each.name: each for each in certificates(Configured(own.leaf(), own.ca.read_bytes(), {}))}
    ours = held.pop(OWN)
    assert ours.since <= clock() < ours.until < clock() + 6 * 86400
    assert len(held) == own.ca.read_text().count("BEGIN CERTIFICATE")
    assert all(each.until > ours.until for each in held.values())


def test_of_two_with_one_name_the_one_that_ends_first_counts(tmp_path: Path) -> None:
    own = Authority.create(tmp_path / "a").issue("arbiter", profile="arbiter", dns=["localhost"])
    other = Authority.create(tmp_path / "b", days=3).issue("arbiter", profile="arbiter", dns=["localhost"])
    anchors = own.ca.read_bytes() + other.ca.read_bytes()
    held = {each.name: each for each in certificates(Configured(own.leaf(), anchors, {}))}
    assert len(held) == 2
    assert min(each.until for each in held.values()) < clock() + 4 * 86400


def test_revocation_lists_by_their_issuer() -> None:
    lists = (List("participants", 1.0, 9.0), List("operators", 2.0, 5.0), List("participants", 3.0, 7.0))
    held = crls(WithLists(b"", b"", {}, revocations=Lists(lists)))
    assert {*held} == {Holds("participants", 3.0, 7.0), Holds("operators", 2.0, 5.0)}
