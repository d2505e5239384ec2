"""Revocation at work: OpenSSL's own check of a whole chain, on the wire and off it."""

from __future__ import annotations

import shutil
import ssl
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from certificates import DAY, clock
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store
from handshakes import Pair, context
from OpenSSL import crypto

from consilium.certificate import identify, identify_arbiter
from consilium.credentials import Credentials
from consilium.errors import UserError
from pki import authority as module
from pki.authority import Authority
from pki.reading import read_certificates
from pki.store import replace_files
from pki.terms import ISSUER_OF

if TYPE_CHECKING:
    from pathlib import Path

    from pki.terms import Profile


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "pki", days=1)


@pytest.fixture
def hub(authority: Authority) -> Credentials:
    return authority.issue("hub", profile="arbiter", dns=["localhost"], ips=["127.0.0.1"])


def lists(path: Path) -> list[x509.CertificateRevocationList]:
    found = path.read_bytes().split(b"-----END X509 CRL-----\n")
    return [x509.load_pem_x509_crl(each + b"-----END X509 CRL-----\n") for each in found[:-1]]


def number(crl: x509.CertificateRevocationList) -> int:
    return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number


def checking(server: Credentials) -> ssl.SSLContext:
    made = context(server, server=True)
    made.load_verify_locations(server.cert.with_name("crl.pem"))
    made.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    return made


def shake(server: Credentials, client: Credentials) -> None:
    Pair(server, client, context=checking(server)).shake()


HOLDERS: list[tuple[str, Profile]] = [("guest", "participant"), ("anna", "operator")]


@pytest.mark.parametrize(("name", "profile"), HOLDERS)
def test_the_good_are_let_in_and_the_revoked_are_not(
    authority: Authority, hub: Credentials, name: str, profile: Profile
) -> None:
    good, bad = authority.issue("good", profile=profile), authority.issue(name, profile=profile)
    shake(hub, bad)
    done = authority.revoke(name, reason="key-compromise")
    assert [record.name for record in done.records] == [name]
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        shake(hub, bad)
    shake(hub, good)


def test_lists_of_the_same_second_supersede_one_another(tmp_path: Path) -> None:
    now = clock()
    authority = Authority.create(tmp_path / "pki", days=1, clock=lambda: now)
    hub = authority.issue("hub", profile="arbiter", dns=["localhost"])
    holders = [authority.issue(f"seat{n}", profile="participant") for n in range(4)]
    live = checking(hub)
    for holder in holders:
        Pair(hub, holder, context=live).shake()
        authority.revoke(holder.cert.parent.name)
        live.load_verify_locations(hub.cert.with_name("crl.pem"))
        with pytest.raises(ssl.SSLError, match="certificate revoked"):
            Pair(hub, holder, context=live).shake()


def test_every_list_has_a_number_and_a_time_of_its_own(authority: Authority, hub: Credentials) -> None:
    seen = [lists(authority.place / "crl.pem")]
    for _ in range(5):
        authority.publish()
        seen.append(lists(authority.place / "crl.pem"))
    for older, newer in pairwise(seen):
        assert [crl.issuer for crl in older] == [crl.issuer for crl in newer]
        for one, two in zip(older, newer, strict=True):
            assert number(two) == number(one) + 1
            assert two.last_update_utc > one.last_update_utc
    assert (authority.place / "crl.pem").read_bytes() == hub.cert.with_name("crl.pem").read_bytes()


def test_each_list_is_signed_by_the_one_whose_it_is(authority: Authority) -> None:
    authority.issue("guest", profile="participant")
    authority.issue("anna", profile="operator")
    authority.revoke("guest", reason="privilege-withdrawn")
    found = dict(
        zip(("root", "participants", "operators", "servers"), lists(authority.place / "crl.pem"), strict=True)
    )
    for name, crl in found.items():
        signer = read_certificates(authority.place / name / "cert.pem")[0]
        assert crl.issuer == signer.subject
        assert crl.is_signature_valid(signer.public_key())  # type: ignore[arg-type]  # always an EC key
        ski = signer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        aki = crl.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        assert aki.key_identifier == ski.digest
    assert {name: len(crl) for name, crl in found.items()} == {
        "root": 0,
        "participants": 1,
        "operators": 0,
        "servers": 0,
    }
    (entry,) = found["participants"]
    reason = entry.extensions.get_extension_for_class(x509.CRLReason).value.reason
    assert reason is x509.ReasonFlags.privilege_withdrawn


def test_no_reason_is_no_extension(authority: Authority) -> None:
    authority.issue("guest", profile="participant")
    authority.revoke("guest")
    (entry,) = lists(authority.place / "crl.pem")[1]
    assert not list(entry.extensions)


def test_a_name_stands_for_every_certificate_it_still_has(authority: Authority, hub: Credentials) -> None:
    first = authority.issue("guest", profile="participant")
    old = copied(first, authority.folder / "old")
    authority.renew("guest")
    second = Credentials.load(authority.folder / "guest")
    shake(hub, old)
    shake(hub, second)
    assert len(authority.revoke("guest").records) == 2
    for each in (old, second):
        with pytest.raises(ssl.SSLError, match="certificate revoked"):
            shake(hub, each)


def copied(credentials: Credentials, folder: Path) -> Credentials:
    folder.mkdir()
    for path in (credentials.cert, credentials.key, credentials.ca):
        (folder / path.name).touch(mode=0o600)
        (folder / path.name).write_bytes(path.read_bytes())
    return Credentials.load(folder)


@pytest.mark.parametrize("which", ["serial", "fingerprint", "suffix"])
def test_one_of_two_certificates_can_be_named(authority: Authority, hub: Credentials, which: str) -> None:
    old = copied(authority.issue("guest", profile="participant"), authority.folder / "old")
    record = authority.index.latest("guest")
    authority.renew("guest")
    new = Credentials.load(authority.folder / "guest")
    (revoked,) = authority.revoke(getattr(record, which)).records
    assert record is not None
    assert (revoked.serial, revoked.reason) == (record.serial, "unspecified")
    shake(hub, new)
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        shake(hub, old)


def test_what_is_revoked_already_keeps_its_date_and_its_reason(authority: Authority) -> None:
    authority.issue("guest", profile="participant")
    first = authority.revoke("guest", reason="superseded")
    again = authority.revoke("guest", reason="key-compromise")
    assert (again.records, [record.reason for record in again.before]) == ((), ["superseded"])
    assert again.published.lists.number == first.published.lists.number + 1


@pytest.mark.parametrize("key", ["nobody", "abcdef01", "", "ca"])
def test_what_was_never_issued_is_not_revoked(authority: Authority, key: str) -> None:
    before = (authority.place / "index.json").read_bytes()
    with pytest.raises(UserError, match="has issued nothing that is called") as refusal:
        authority.revoke(key)
    assert "consilium pki list" in refusal.value.hint
    assert (authority.place / "index.json").read_bytes() == before


def test_what_can_mean_two_things_revokes_neither(authority: Authority) -> None:
    guest = authority.issue("guest", profile="participant").fingerprint().hex()
    authority.issue(guest[:8], profile="participant")
    before = (authority.place / "index.json").read_bytes()
    with pytest.raises(UserError, match="can mean 2 things here") as refusal:
        authority.revoke(guest[:8])
    assert "--json" in refusal.value.hint
    assert (authority.place / "index.json").read_bytes() == before
    assert [record.name for record in authority.revoke(guest).records] == ["guest"]


def test_what_has_ended_need_not_be_revoked(tmp_path: Path) -> None:
    Authority.create(tmp_path / "pki", clock=lambda: clock() - 60 * DAY).issue("guest", profile="participant")
    with pytest.raises(UserError, match="every certificate that 'guest' names has expired"):
        Authority.open(tmp_path / "pki").revoke("guest")


def test_a_clock_that_was_put_back_revokes_nothing_and_says_so(tmp_path: Path) -> None:
    Authority.create(tmp_path / "pki").issue("guest", profile="participant")
    late = Authority.open(tmp_path / "pki", clock=lambda: clock() - DAY)
    with pytest.raises(UserError, match="nothing was changed") as refusal:
        late.revoke("guest")
    assert "clock" in refusal.value.hint
    assert late.index.latest("guest").revoked is None  # type: ignore[union-attr]  # it was issued above


@pytest.mark.parametrize("profile", ["participant", "operator", "arbiter"])
def test_three_judges_accept_what_is_issued(authority: Authority, hub: Credentials, profile: Profile) -> None:
    hosts: dict[str, Any] = {"dns": ["localhost"]} if profile == "arbiter" else {}
    credentials = authority.issue("holder", profile=profile, **hosts)
    leaf, *others = read_certificates(credentials.cert)
    now = datetime.fromtimestamp(clock(), UTC)
    policy = PolicyBuilder().store(Store(read_certificates(credentials.ca))).time(now)
    if profile == "arbiter":
        identify_arbiter(credentials.leaf())
        chain = policy.build_server_verifier(x509.DNSName("localhost")).verify(leaf, others)
        Pair(credentials, authority.issue("seat", profile="participant")).shake()
    else:
        identify(credentials.leaf())
        chain = policy.build_client_verifier().verify(leaf, others).chain
        shake(hub, credentials)
    assert len(chain) == 3
    store = crypto.X509Store()
    store.add_cert(crypto.X509.from_cryptography(authority.root))
    for crl in lists(authority.place / "crl.pem"):
        store.add_crl(crl)
    flags = crypto.X509StoreFlags
    store.set_flags(flags.X509_STRICT | flags.CRL_CHECK | flags.CRL_CHECK_ALL)
    below = [crypto.X509.from_cryptography(each) for each in others]
    verified = crypto.X509StoreContext(store, crypto.X509.from_cryptography(leaf), below)
    assert len(verified.get_verified_chain()) == 3


KINDS: list[tuple[str, Profile]] = [
    ("participants", "arbiter"),
    ("operators", "arbiter"),
    ("servers", "participant"),
    ("servers", "operator"),
]


@pytest.mark.parametrize(("issuer", "profile"), KINDS)
def test_an_intermediate_signs_no_other_kind(
    authority: Authority, hub: Credentials, issuer: str, profile: Profile
) -> None:
    """Whoever has stolen one of its keys cannot make the other kind of certificate with it."""
    seat = authority.issue("seat", profile="participant")
    for part in ("cert.pem", "key.pem"):
        shutil.copyfile(authority.place / issuer / part, authority.place / ISSUER_OF[profile] / part)
    hosts = ["localhost"] if profile == "arbiter" else []
    forged = authority.issue("false", profile=profile, dns=hosts)
    pair = Pair(forged, seat) if profile == "arbiter" else Pair(hub, forged)
    with pytest.raises(ssl.SSLError, match="unsuitable certificate purpose"):
        pair.shake()


def test_lists_reach_every_arbiter_that_is_here(authority: Authority, hub: Credentials) -> None:
    second = authority.issue("second", profile="arbiter", dns=["localhost"])
    gone = authority.issue("gone", profile="arbiter", dns=["localhost"])
    gone.cert.parent.rename(authority.folder.parent / "carried away")
    authority.issue("guest", profile="participant")
    published = authority.revoke("guest").published
    paths = [authority.place / "crl.pem", *(each.cert.with_name("crl.pem") for each in (hub, second))]
    assert list(published.written) == paths
    assert published.failed == {}
    assert len({path.read_bytes() for path in paths}) == 1


def test_one_folder_that_cannot_be_written_holds_up_no_other(authority: Authority, hub: Credentials) -> None:
    second = authority.issue("second", profile="arbiter", dns=["localhost"])
    moved = hub.cert.parent.rename(authority.folder.parent / "elsewhere")
    (authority.folder / "hub").symlink_to(moved)
    before = (moved / "crl.pem").read_bytes()
    published = authority.publish()
    assert list(published.failed) == [authority.folder / "hub" / "crl.pem"]
    assert "left alone" in published.failed[authority.folder / "hub" / "crl.pem"]
    assert second.cert.with_name("crl.pem") in published.written
    assert (moved / "crl.pem").read_bytes() == before


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_revocation_that_is_cut_short_is_made_good_by_the_next_that_writes(
    authority: Authority, hub: Credentials, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    guest = authority.issue("guest", profile="participant")
    count = 0

    def killed(folder: Path, files: dict[str, bytes]) -> None:
        nonlocal count
        count += 1
        if count == step:
            raise KeyboardInterrupt
        replace_files(folder, files)

    with monkeypatch.context() as broken:
        broken.setattr(module, "replace_files", killed)
        with pytest.raises(KeyboardInterrupt):
            authority.revoke("guest")
    authority.revoke("guest")
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        shake(hub, guest)


def test_an_arbiter_is_issued_with_lists_that_hold(tmp_path: Path) -> None:
    old = Authority.create(tmp_path / "pki", crl_days=1, clock=lambda: clock() - 3 * DAY)
    assert old.index.lists.number == 1
    authority = Authority.open(tmp_path / "pki")
    hub = authority.issue("hub", profile="arbiter", dns=["localhost"])
    assert authority.index.lists.number == 2
    shake(hub, authority.issue("seat", profile="participant"))
    (authority.place / "crl.pem").unlink()
    other = authority.issue("other", profile="arbiter", dns=["localhost"])
    assert authority.index.lists.number == 3
    assert other.cert.with_name("crl.pem").read_bytes() == hub.cert.with_name("crl.pem").read_bytes()


def test_an_index_that_is_damaged_stops_everything_that_writes(authority: Authority) -> None:
    (authority.place / "index.json").write_bytes(b"{")
    for attempt in (
        lambda: authority.issue("seat", profile="participant"),
        lambda: authority.revoke("seat"),
        authority.publish,
    ):
        with pytest.raises(UserError, match=r"index\.json is damaged"):
            attempt()
    assert not (authority.folder / "seat").exists()
