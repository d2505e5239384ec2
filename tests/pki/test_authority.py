"""§14.4: who gets which certificate, and who gets none."""

from __future__ import annotations

import itertools
import os
import pathlib
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from certificates import DAY, forge_root, issue_odd, uris
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from consilium.certificate import identify, identify_arbiter, validity
from consilium.credentials import Credentials
from consilium.errors import UserError
from pki.authority import Authority
from pki.reading import called, is_usable, read_certificates
from pki.renewal import renew
from pki.signers import is_numbered

if TYPE_CHECKING:
    from pathlib import Path

    from pki.terms import Profile

NOW = 1_800_000_000.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "pki", clock=lambda: NOW)


@pytest.mark.parametrize("profile", ["participant", "operator"])
def test_a_holder_is_who_the_authority_says(authority: Authority, profile: Profile) -> None:
    credentials = authority.issue("claude_sonnet", profile=profile)
    identity = identify(credentials.leaf())
    assert (identity.trust_domain, identity.profile, identity.subject) == (
        "council.local",
        profile,
        "claude_sonnet",
    )
    assert identity.lifetime_days == 30
    assert identity.fingerprint == credentials.fingerprint()


def test_an_arbiter_is_named_with_its_hosts(authority: Authority) -> None:
    credentials = authority.issue(
        "hub", profile="arbiter", dns=["arbiter", "localhost"], ips=["127.0.0.1", "::1"]
    )
    assert identify_arbiter(credentials.leaf()).subject == "hub"
    certificate, signer = read_certificates(credentials.cert)
    assert called(signer.subject) == "Consilium servers (council.local)"
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["arbiter", "localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1"]


def test_a_holders_folder_is_all_that_it_needs(authority: Authority) -> None:
    credentials = authority.issue("seat", profile="participant")
    folder = authority.folder / "seat"
    assert sorted(path.name for path in folder.iterdir()) == ["ca.pem", "cert.pem", "key.pem"]
    assert credentials.ca.read_bytes() == authority.anchors
    assert (folder.stat().st_mode & 0o777, credentials.key.stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_authoritys_own_key_does_not_leave_its_folder(authority: Authority) -> None:
    authority.issue("seat", profile="participant")
    places = sorted(path.name for path in authority.place.iterdir())
    assert places == ["crl.pem", "index.json", "operators", "participants", "root", "servers"]
    for issuer in SIGNERS:
        assert sorted(path.name for path in (authority.place / issuer).iterdir()) == ["cert.pem", "key.pem"]
        assert stat.S_IMODE((authority.place / issuer / "key.pem").stat().st_mode) == 0o600
        own = (authority.place / issuer / "key.pem").read_bytes()
        assert not [path for path in (authority.folder / "seat").iterdir() if own in path.read_bytes()]
    assert stat.S_IMODE((authority.place / "index.json").stat().st_mode) == 0o600


def test_every_certificate_has_its_own_key_and_serial(authority: Authority) -> None:
    made = [read_certificates(authority.issue(name, profile="participant").cert)[0] for name in ("a", "b")]
    assert made[0].serial_number != made[1].serial_number
    assert made[0].public_key() != made[1].public_key()


def test_an_authority_that_is_opened_again_is_the_same(authority: Authority) -> None:
    again = Authority.open(authority.folder, clock=lambda: NOW)
    assert again.trust_domain == authority.trust_domain
    assert again.anchors == authority.anchors
    made, signer = read_certificates(again.issue("seat", profile="participant").cert)
    made.verify_directly_issued_by(signer)
    signer.verify_directly_issued_by(authority.root)


def test_the_trust_domain_is_kept_in_the_authoritys_certificate(tmp_path: Path) -> None:
    Authority.create(tmp_path / "pki", trust_domain="council.example", clock=lambda: NOW)
    authority = Authority.open(tmp_path / "pki", clock=lambda: NOW)
    seat = authority.issue("seat", profile="participant")
    assert identify(seat.leaf()).trust_domain == "council.example"


def test_without_a_clock_it_goes_by_the_real_one(tmp_path: Path) -> None:
    Authority.create(tmp_path / "pki", days=1)
    seat = Authority.open(tmp_path / "pki").issue("seat", profile="participant", days=1)
    identity = identify(seat.leaf())
    assert identity.lifetime_days == pytest.approx(1, abs=0.001)
    assert validity(seat.leaf(), seat.cert.stat().st_mtime).state == "valid"


def test_a_second_authority_in_the_same_folder_is_refused(authority: Authority) -> None:
    with pytest.raises(UserError, match="is there already, and no key is overwritten") as refusal:
        Authority.create(authority.folder, clock=lambda: NOW)
    assert "another folder" in refusal.value.hint
    assert Authority.open(authority.folder, clock=lambda: NOW).anchors == authority.anchors


def test_a_holder_is_renewed_only_when_that_is_said(authority: Authority) -> None:
    first = authority.issue("seat", profile="participant").fingerprint()
    with pytest.raises(UserError, match="is there already") as refusal:
        authority.issue("seat", profile="participant")
    assert "--replace" in refusal.value.hint
    renewed = authority.issue("seat", profile="participant", replace=True)
    assert renewed.fingerprint() != first


@pytest.mark.parametrize(
    "name",
    ["", "ca", "..", "../x", "a/b", "/etc", "A", "a b", "-x", ".x", "a.b", "a\n", "\u0430", "a" * 65, "a\0"],
)
def test_a_name_that_is_no_name_is_refused_and_writes_nothing(authority: Authority, name: str) -> None:
    with pytest.raises(UserError, match="cannot be the name of a holder"):
        authority.issue(name, profile="participant")
    assert [path.name for path in authority.folder.iterdir()] == ["ca"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"profile": "participant", "dns": ["localhost"]}, "only an arbiter's certificate names hosts"),
        ({"profile": "operator", "ips": ["127.0.0.1"]}, "only an arbiter's certificate names hosts"),
        ({"profile": "arbiter"}, "must name the hosts"),
        ({"profile": "arbiter", "dns": ["*.council.local"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": ["Council.local"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": ["-a.local"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": ["a-.local"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": ["a..b"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": ["a\nb"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": [".".join(["a" * 63] * 4)]}, "is not a host name"),
        ({"profile": "arbiter", "dns": ["127.0.0.1"]}, "is not a host name"),
        ({"profile": "arbiter", "dns": [""]}, "is not a host name"),
        ({"profile": "arbiter", "ips": ["localhost"]}, "does not appear to be an IPv4 or IPv6 address"),
        ({"profile": "arbiter", "ips": ["10.0.0.0/8"]}, "does not appear to be an IPv4 or IPv6 address"),
        ({"profile": "participant", "days": 0}, "a lifetime of 0 days"),
        ({"profile": "participant", "days": -1}, "a lifetime of -1 days"),
        ({"profile": "participant", "days": 91}, "a lifetime of 91 days"),
    ],
)
def test_what_cannot_be_granted_is_refused(authority: Authority, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        authority.issue("seat", **asked)
    assert [path.name for path in authority.folder.iterdir()] == ["ca"]


@pytest.mark.parametrize("domain", ["", "Council", "a b", "a/b", "*", "a..b", "-a", "\u0430.b", "a\n"])
def test_a_trust_domain_that_is_none_is_refused(tmp_path: Path, domain: str) -> None:
    with pytest.raises(UserError, match="cannot be a trust domain"):
        Authority.create(tmp_path / "pki", trust_domain=domain)
    assert not (tmp_path / "pki").exists()


@pytest.mark.parametrize("days", [0, 3651])
def test_an_authority_lives_between_a_day_and_ten_years(tmp_path: Path, days: int) -> None:
    with pytest.raises(UserError, match="from 1 to 3650 days"):
        Authority.create(tmp_path / "pki", days=days)


@pytest.mark.parametrize(
    ("at", "why"),
    [
        (400 * DAY, r"participants \(council.local\) is expired 35 days ago"),
        (-DAY, "is not valid for another 23 hours"),
    ],
)
def test_an_authority_outside_its_life_does_not_issue(authority: Authority, at: float, why: str) -> None:
    late = Authority.open(authority.folder, clock=lambda: NOW + at)
    with pytest.raises(UserError, match=why):
        late.issue("seat", profile="participant")


def test_a_folder_without_an_authority_is_told_how_to_get_one(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(UserError, match="there is no authority in") as refusal:
            Authority.open(folder)
        assert refusal.value.hint == f"consilium pki init {folder}"


@pytest.mark.parametrize("place", ["", "ca", "ca/root", "ca/participants"])
def test_a_folder_that_others_may_write_to_is_not_trusted(authority: Authority, place: str) -> None:
    (authority.folder / place).chmod(0o770)
    with pytest.raises(UserError, match="others may write to"):
        use(authority, "root")


@pytest.mark.parametrize("place", ["ca", "ca/participants"])
def test_a_folder_that_is_a_link_is_not_trusted(authority: Authority, tmp_path: Path, place: str) -> None:
    (authority.folder / place).rename(tmp_path / "moved")
    (authority.folder / place).symlink_to(tmp_path / "moved")
    with pytest.raises(UserError, match="is a symbolic link"):
        use(authority, "root")


SIGNERS = ("root", "participants", "operators", "servers")
PROFILES: dict[str, Profile] = {"participants": "participant", "operators": "operator", "servers": "arbiter"}


def use(authority: Authority, issuer: str) -> None:
    """Let ``issuer`` sign something."""
    again = Authority.open(authority.folder, clock=lambda: NOW)
    if issuer == "root":
        again.publish()
    else:
        again.issue("x", profile=PROFILES[issuer], dns=["localhost"] if issuer == "servers" else [])


def rewrite(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    path.write_bytes(content)
    path.chmod(mode)


def not_signed_with(authority: Authority, issuer: str, why: str) -> UserError:
    before = snapshot(authority.folder)
    with pytest.raises(UserError, match=why) as refusal:
        use(authority, issuer)
    assert snapshot(authority.folder) == before
    return refusal.value


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("issuer", SIGNERS)
def test_a_key_that_others_can_read_is_not_signed_with(authority: Authority, issuer: str) -> None:
    (authority.place / issuer / "key.pem").chmod(0o644)
    not_signed_with(authority, issuer, "open to other users")


@pytest.mark.parametrize("issuer", SIGNERS)
def test_a_key_that_is_a_link_is_not_signed_with(authority: Authority, tmp_path: Path, issuer: str) -> None:
    key = authority.place / issuer / "key.pem"
    key.rename(tmp_path / "moved.pem")
    key.symlink_to(tmp_path / "moved.pem")
    not_signed_with(authority, issuer, "is a symbolic link")


@pytest.mark.parametrize("issuer", SIGNERS)
def test_a_key_of_another_authority_is_noticed(authority: Authority, issuer: str) -> None:
    rewrite(authority.place / issuer / "key.pem", issue_odd(forge_root()).key_pem)
    not_signed_with(authority, issuer, "is not the key of")


def test_a_broken_key_is_refused_and_not_quoted(authority: Authority) -> None:
    path = authority.place / "participants" / "key.pem"
    pem = path.read_bytes()
    rewrite(path, pem.replace(b"\n", b"\nAA", 1))
    refusal = not_signed_with(authority, "participants", "holds no private key in PEM form")
    assert refusal.__cause__ is None
    assert pem.splitlines()[1].decode()[:20] not in str(refusal)


def test_a_key_under_a_password_is_refused_without_a_prompt(authority: Authority) -> None:
    sealed = authority.signer("participants").key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    rewrite(authority.place / "participants" / "key.pem", sealed)
    not_signed_with(authority, "participants", "holds no private key in PEM form")


def test_an_authority_of_another_kind_of_key_is_refused(authority: Authority) -> None:
    rewrite(authority.place / "operators" / "key.pem", issue_odd(forge_root(), key="RSA").key_pem)
    not_signed_with(authority, "operators", "is not an elliptic curve key")


@pytest.mark.parametrize(
    "names", [[], uris("https://council.local"), uris("spiffe://a", "spiffe://b"), uris("spiffe://a/b/c")]
)
def test_a_certificate_that_is_no_authority_of_ours_is_refused(
    authority: Authority, names: list[x509.GeneralName]
) -> None:
    forged = issue_odd(forge_root(), names=names, now=NOW)
    rewrite(authority.place / "root" / "cert.pem", forged.pem)
    with pytest.raises(UserError, match="is not the certificate of an authority of ours"):
        Authority.open(authority.folder)


def test_two_issuers_at_once_do_not_both_win(authority: Authority) -> None:
    start = threading.Barrier(4)

    def issue(_: int) -> bytes | None:
        start.wait()
        try:
            return authority.issue("seat", profile="participant").fingerprint()
        except UserError:
            return None

    with ThreadPoolExecutor(4) as pool:
        won = [found for found in pool.map(issue, range(4)) if found is not None]
    assert won == [Credentials.load(authority.folder / "seat").fingerprint()]
    assert sorted(path.name for path in authority.folder.iterdir()) == ["ca", "seat"]


# --- what is interrupted --------------------------------------------------------------------------------


def killed_at(step: int, work: Callable[[], object]) -> bool:
    """Do ``work`` in a process that dies before its ``step``-th rename; whether it came to that."""
    child = os.fork()
    if child == 0:
        moves = itertools.count(1)
        for name in ("rename", "replace"):
            real = getattr(pathlib.Path, name)

            def dying(self: Path, target: Path, real: Any = real) -> Any:
                if next(moves) == step:
                    os._exit(9)
                return real(self, target)

            setattr(pathlib.Path, name, dying)
        try:
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


WORK: dict[str, Callable[[Authority], object]] = {
    "issue": lambda authority: authority.issue("new", profile="participant"),
    "issue an arbiter": lambda authority: authority.issue("second", profile="arbiter", dns=["localhost"]),
    "renew": lambda authority: authority.renew("seat"),
    "renew the arbiter": lambda authority: authority.renew("hub"),
    "revoke": lambda authority: authority.revoke("seat"),
    "lists": lambda authority: authority.publish(),
}


@pytest.mark.parametrize("work", WORK)
def test_whatever_is_killed_leaves_an_authority_that_works(tmp_path: Path, work: str) -> None:
    steps = 0
    for step in itertools.count(1):
        authority = Authority.create(tmp_path / f"{step}", clock=lambda: NOW)
        authority.issue("hub", profile="arbiter", dns=["localhost"])
        authority.issue("seat", profile="participant")
        if not killed_at(step, lambda authority=authority: WORK[work](authority)):  # type: ignore[misc]  # bound
            break
        steps += 1
        again = Authority.open(authority.folder, clock=lambda: NOW)
        issued = {record.fingerprint for record in again.index.issued}
        assert {
            Credentials.load(again.folder / name).fingerprint().hex() for name in ("hub", "seat")
        } <= issued
        WORK[work](again) if work != "issue" else again.issue("new", profile="participant", replace=True)
        renew(again, None, within=0, days=None, revoke=False)
        assert all(is_usable(again.folder / name) for name in ("hub", "seat"))
        number = again.index.lists.number
        assert is_numbered(again.place / "crl.pem", number)
        assert is_numbered(again.folder / "hub" / "crl.pem", number)
    assert steps >= 2
