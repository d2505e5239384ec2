"""``renew``: a new key for the same holder, at the right time, and never for one that was revoked."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from certificates import DAY
from cryptography import x509

from consilium.certificate import identify
from consilium.credentials import Credentials
from consilium.errors import UserError
from pki.authority import Authority
from pki.reading import is_usable, read_certificates
from pki.renewal import Renewals, renew
from pki.signers import is_numbered

if TYPE_CHECKING:
    from pathlib import Path

NOW = 1_800_000_000.0


@dataclass
class Clock:
    now: float = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def authority(tmp_path: Path, clock: Clock) -> Authority:
    made = Authority.create(tmp_path / "pki", clock=clock)
    made.issue("hub", profile="arbiter", dns=["localhost", "council.example"], ips=["127.0.0.1"])
    made.issue("seat", profile="participant")
    made.issue("anna", profile="operator", days=7)
    return made


def everything(authority: Authority, within: int | None = 10) -> Renewals:
    return renew(authority, None, within=within, days=None, revoke=False)


def names(done: Renewals) -> list[str]:
    return [new.name for new, _ in done.renewed]


def test_same_identity_other_key(authority: Authority, clock: Clock) -> None:
    old = Credentials.load(authority.folder / "seat")
    before = read_certificates(old.cert)[0]
    clock.now += 5 * DAY
    record = authority.renew("seat")
    assert record is not None
    new = read_certificates(old.cert)[0]
    assert identify(old.leaf()).subject == "seat"
    assert (new.subject, new.issuer) == (before.subject, before.issuer)
    assert new.public_key() != before.public_key()
    assert record.not_after - record.not_before == 30 * DAY
    assert Credentials.load(authority.folder / "seat").fingerprint().hex() == record.fingerprint
    assert len(authority.index.issued) == 4


def test_an_arbiter_keeps_its_hosts_and_gets_the_lists(authority: Authority) -> None:
    (authority.folder / "hub" / "crl.pem").unlink()
    authority.renew("hub")
    certificate = read_certificates(authority.folder / "hub" / "cert.pem")[0]
    hosts = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert hosts.get_values_for_type(x509.DNSName) == ["localhost", "council.example"]
    assert [str(ip) for ip in hosts.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert is_numbered(authority.folder / "hub" / "crl.pem", authority.index.lists.number)


def test_another_lifetime_stays_with_the_holder(authority: Authority) -> None:
    authority.renew("seat", days=5)
    record = authority.renew("seat")
    assert record is not None
    assert record.not_after - record.not_before == 5 * DAY
    with pytest.raises(UserError, match="a lifetime of 91 days"):
        authority.renew("seat", days=91)


def test_only_what_ends_soon_is_renewed(authority: Authority, clock: Clock) -> None:
    assert names(everything(authority)) == ["anna"]
    assert names(everything(authority, 5)) == []
    clock.now += 21 * DAY
    assert names(everything(authority)) == ["hub", "seat", "anna"]
    assert names(everything(authority, 5)) == []
    assert names(everything(authority, None)) == ["hub", "seat", "anna"]


def test_what_has_ended_long_ago_is_renewed(authority: Authority, clock: Clock) -> None:
    clock.now += 60 * DAY
    assert names(everything(authority, 0)) == ["hub", "seat", "anna"]


DAMAGE = {
    "key gone": lambda folder: (folder / "key.pem").unlink(),
    "certificate gone": lambda folder: (folder / "cert.pem").unlink(),
    "anchors gone": lambda folder: (folder / "ca.pem").unlink(),
    "another's key": lambda folder: shutil.copyfile(folder.parent / "anna" / "key.pem", folder / "key.pem"),
    "empty": lambda folder: (folder / "cert.pem").write_bytes(b""),
    "key open to others": lambda folder: (folder / "key.pem").chmod(0o640),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_folder_that_cannot_be_used_is_made_good(authority: Authority, kind: str) -> None:
    folder = authority.folder / "seat"
    DAMAGE[kind](folder)
    assert not is_usable(folder)
    assert names(everything(authority, 0)) == ["seat"]
    assert is_usable(folder)


def test_the_revoked_are_not_brought_back(authority: Authority) -> None:
    authority.revoke("seat")
    done = everything(authority, None)
    assert names(done) == ["hub", "anna"]
    assert done.kept == {"seat": "was revoked"}
    with pytest.raises(UserError, match="was revoked, and is not renewed") as refusal:
        authority.renew("seat")
    assert refusal.value.hint.endswith(f"pki issue {authority.folder} seat --profile participant --replace")
    authority.issue("seat", profile="participant", replace=True)
    assert "seat" in names(everything(authority, None))


def test_who_was_carried_elsewhere_is_left_alone_until_named(authority: Authority) -> None:
    shutil.rmtree(authority.folder / "seat")
    done = everything(authority, None)
    assert done.kept == {"seat": f"is not in {authority.folder}"}
    assert not (authority.folder / "seat").exists()
    assert names(renew(authority, "seat", within=None, days=None, revoke=False)) == ["seat"]
    assert is_usable(authority.folder / "seat")


def test_what_is_replaced_can_be_revoked_and_nothing_else_is(authority: Authority) -> None:
    old = authority.index.latest("seat")
    done = renew(authority, "seat", within=None, days=None, revoke=True)
    assert done.published is not None
    revoked = [record for record in authority.index.issued if record.revoked is not None]
    assert [(record.serial, record.reason) for record in revoked] == [(old and old.serial, "superseded")]


def test_the_lists_are_renewed_with_the_rest(authority: Authority, clock: Clock) -> None:
    assert everything(authority, 0).published is None
    clock.now += 25 * DAY
    published = everything(authority).published
    assert published is not None
    assert published.lists.next_update == int(clock.now) + 30 * DAY
    assert everything(authority, 0).published is None


@pytest.mark.parametrize("where", ["ca", "hub"])
def test_a_copy_of_the_lists_that_is_missing_is_made_good(authority: Authority, where: str) -> None:
    (authority.folder / where / "crl.pem").unlink()
    published = everything(authority, 0).published
    assert published is not None
    assert is_numbered(authority.folder / where / "crl.pem", published.lists.number)


def test_one_that_cannot_be_renewed_holds_up_no_other(authority: Authority) -> None:
    (authority.place / "participants" / "key.pem").chmod(0o644)
    done = everything(authority, None)
    assert names(done) == ["hub", "anna"]
    assert list(done.refused) == ["seat"]
    assert "open to other users" in done.refused["seat"]
    assert "FAILED       seat: " in done.as_text(NOW)


def test_nobody_is_renewed_who_was_issued_nothing(authority: Authority) -> None:
    with pytest.raises(UserError, match="has issued nothing to 'bob'"):
        renew(authority, "bob", within=10, days=None, revoke=False)
    with pytest.raises(UserError, match="in the past"):
        renew(authority, "seat", within=-1, days=None, revoke=False)


def test_two_at_once_renew_what_is_due_once(authority: Authority, clock: Clock) -> None:
    clock.now += 25 * DAY
    start = threading.Barrier(4)

    def one(_: int) -> list[str]:
        start.wait()
        return names(renew(authority, "seat", within=10, days=None, revoke=False))

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(one, range(4)))
    assert sorted(done) == [[], [], [], ["seat"]]
    assert is_usable(authority.folder / "seat")


def test_the_report_says_what_became_of_each(authority: Authority) -> None:
    done = everything(authority)
    lines = done.as_text(NOW).splitlines()
    assert lines[0].startswith("renewed      anna_")
    assert "ends in 6 days (before: _" in lines[0]
    assert lines[1:] == ["kept         hub: ends in 29 days", "kept         seat: ends in 29 days"]
    told = done.as_json(NOW)
    assert [each["name"] for each in told["renewed"]] == ["anna"]
    assert told["renewed"][0]["replaces"] == done.renewed[0][1].serial
    assert (told["lists"], told["failed"], told["refused"]) == (None, {}, {})
