"""What an Arbiter goes by, and how long it holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from certificates import clock

from arbiter.changes import Configured
from arbiter.metrics.holding import OWN, certificates, crls
from arbiter.revocation import Revocations
from consilium.credentials import CRL
from pki.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path


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


def test_revocation_lists_by_their_issuer(tmp_path: Path) -> None:
    own = Authority.create(tmp_path / "certs").issue("arbiter", profile="arbiter", dns=["localhost"])
    revocations = Revocations.parse((own.cert.parent / CRL).read_bytes())
    held = crls(Configured(b"", b"", {}, revocations))
    names = {each.name: each for each in held}
    assert len(names) == len(held) == len(revocations.lists) > 1
    assert all(each.since <= clock() < each.until for each in held)
    assert any("participants" in name for name in names)
    soonest = replace(revocations.lists[0], next_update=1.0)
    twice = Revocations((*revocations.lists, soonest))
    again = {each.name: each.until for each in crls(Configured(b"", b"", {}, twice))}
    assert again[soonest.issuer] == 1.0, "of two lists of one issuer, the one that ends first"
