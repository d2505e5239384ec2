"""``show``: what a certificate says, in words that are safe to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from certificates import forge_root, issue_odd, uris
from cryptography import x509

from consilium.errors import UserError
from consilium.identity import fingerprint
from pki.authority import Authority
from pki.show import show

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "pki", clock=lambda: NOW)


def test_a_seat_is_shown_with_what_it_is_known_by(authority: Authority) -> None:
    credentials = authority.issue("seat", profile="participant")
    shown = show(authority.folder / "seat", now=NOW)
    assert shown == show(credentials.cert, now=NOW)
    assert shown.kind == "participant"
    assert (shown.subject, shown.issuer) == ("seat", "Consilium participants (council.local)")
    assert shown.names == ("spiffe://council.local/participant/seat",)
    assert shown.fingerprint == fingerprint(credentials.leaf()).hex()
    assert shown.suffix == shown.fingerprint[:8].upper()
    assert shown.not_after - shown.not_before == 30 * 86400
    assert shown.validity == "valid for another 29 days (until 2027-02-14 07:55:00 UTC)"
    assert shown.refused == ()


def test_an_operator_is_shown_as_one(authority: Authority) -> None:
    authority.issue("anna", profile="operator")
    assert show(authority.folder / "anna", now=NOW).kind == "operator"


def test_an_arbiter_is_shown_with_its_hosts(authority: Authority) -> None:
    authority.issue("hub", profile="arbiter", dns=["localhost"], ips=["::1"])
    shown = show(authority.folder / "hub", now=NOW)
    assert shown.kind == "arbiter"
    assert shown.names == ("spiffe://council.local/arbiter/hub", "DNS:localhost", "IP:::1")


def test_an_authority_is_shown_as_one(authority: Authority) -> None:
    for each in ("root", "participants", "operators", "servers"):
        shown = show(authority.place / each, now=NOW)
        assert (shown.kind, shown.names, shown.refused) == ("authority", ("spiffe://council.local",), ())


def test_what_would_be_refused_is_said(tmp_path: Path) -> None:
    root = forge_root(now=NOW)
    odd = issue_odd(root, now=NOW, names=[], usages=None, no_constraints=True)
    odd.write(tmp_path / "seat")
    shown = show(tmp_path / "seat", now=NOW)
    assert shown.names == ()
    assert shown.kind == "participant or operator"
    assert len(shown.refused) == 3
    text = shown.as_text()
    assert "names        none\n" in text
    assert "refused      the extended key usage is missing; it must be exactly clientAuth\n" in text


def test_the_text_is_one_line_a_fact(authority: Authority) -> None:
    authority.issue("seat", profile="participant")
    shown = show(authority.folder / "seat", now=NOW)
    lines = shown.as_text().splitlines()
    assert lines[1] == "subject      seat"
    assert f"suffix       _{shown.suffix} (for display only)" in lines
    assert len(lines) == 9


def test_the_json_holds_every_fact(authority: Authority) -> None:
    authority.issue("seat", profile="participant")
    shown = show(authority.folder / "seat", now=NOW)
    assert shown.as_json()["fingerprint"] == shown.fingerprint
    assert shown.as_json()["names"] == shown.names


def test_names_made_to_move_the_cursor_are_escaped(tmp_path: Path) -> None:
    names = [*uris("spiffe://x/\x1b[2J"), x509.DNSName("\x1b]0;x\x07")]
    issue_odd(forge_root(now=NOW), now=NOW, cn="a\x1bb", names=names).write(tmp_path / "seat")
    text = show(tmp_path / "seat", now=NOW).as_text()
    assert all(line.isprintable() for line in text.splitlines())
    assert "subject      a\\x1bb\n" in text


def test_a_subject_without_a_common_name_is_shown_whole(tmp_path: Path) -> None:
    subject = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "council")])
    issue_odd(forge_root(now=NOW), now=NOW, subject=subject).write(tmp_path / "seat")
    assert show(tmp_path / "seat", now=NOW).subject == "O=council"


def test_a_key_is_never_shown(authority: Authority) -> None:
    authority.issue("seat", profile="participant")
    with pytest.raises(UserError) as refusal:
        show(authority.folder / "seat" / "key.pem", now=NOW)
    assert str(refusal.value) == f"{authority.folder / 'seat' / 'key.pem'} holds no certificate in PEM form"
