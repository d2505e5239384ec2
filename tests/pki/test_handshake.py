"""The certificates at work: TLS 1.3 both ways over memory, strict verification on, as from Python 3.13."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
from certificates import CLIENT_AUTH, SERVER_AUTH, forge_root, issue_odd
from handshakes import Pair

from consilium.certificate import CertificateRefused, identify, identify_arbiter
from pki.authority import Authority
from pki.signers import pem

if TYPE_CHECKING:
    from pathlib import Path

    from consilium.credentials import Credentials
    from pki.terms import Profile


def refused(server: Credentials, client: Credentials, host: str = "localhost") -> str:
    with pytest.raises(ssl.SSLError) as refusal:
        Pair(server, client, host).shake()
    return str(refusal.value)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "pki", days=1)


def forged(authority: Authority, folder: Path, **odd: Any) -> Credentials:
    """A seat's credentials, signed as the authority would, with what is odd about them."""
    signer = authority.signer("participants")
    return issue_odd(signer, **odd).write(
        folder, intermediates=pem(signer.certificate), anchors=authority.anchors
    )


@pytest.fixture
def hub(authority: Authority) -> Credentials:
    return authority.issue("hub", profile="arbiter", dns=["localhost"], ips=["127.0.0.1", "::1"], days=1)


@pytest.fixture
def seat(authority: Authority) -> Credentials:
    return authority.issue("seat", profile="participant", days=1)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
@pytest.mark.parametrize("profile", ["participant", "operator"])
def test_both_ends_accept_and_know_each_other(
    authority: Authority, hub: Credentials, host: str, profile: Profile
) -> None:
    holder = authority.issue("holder", profile=profile)
    pair = Pair(hub, holder, host)
    pair.shake()
    assert pair.server.version() == "TLSv1.3"
    assert pair.pass_on(b"hello") == b"hello"
    shown, served = pair.server.getpeercert(binary_form=True), pair.client.getpeercert(binary_form=True)
    assert shown is not None
    assert served is not None
    assert (identify(shown).profile, identify(shown).subject) == (profile, "holder")
    assert identify(shown).fingerprint == holder.fingerprint()
    assert identify_arbiter(served).fingerprint == hub.fingerprint()


def test_a_host_that_is_not_in_the_certificate_is_refused(hub: Credentials, seat: Credentials) -> None:
    assert "Hostname mismatch" in refused(hub, seat, "arbiter.example")
    assert "IP address mismatch" in refused(hub, seat, "127.0.0.2")


def test_a_seat_cannot_serve_as_the_arbiter(authority: Authority, seat: Credentials) -> None:
    other = authority.issue("other", profile="participant")
    assert "unsuitable certificate purpose" in refused(seat, other)


def test_the_arbiters_certificate_cannot_take_a_seat(hub: Credentials) -> None:
    assert "unsuitable certificate purpose" in refused(hub, hub)


def test_a_seat_of_another_authority_of_the_same_name_is_refused(
    tmp_path: Path, authority: Authority, hub: Credentials
) -> None:
    other = Authority.create(tmp_path / "other")
    assert other.root.subject == authority.root.subject
    stranger = other.issue("seat", profile="participant")
    stranger.ca.write_bytes(authority.anchors)
    assert "unable to get local issuer certificate" in refused(hub, stranger)


def test_an_expired_seat_is_refused(tmp_path: Path, hub: Credentials) -> None:
    authority = Authority.open(tmp_path / "pki")
    expired = forged(authority, tmp_path / "expired", start=-600, seconds=300)
    assert "certificate has expired" in refused(hub, expired)


@pytest.mark.parametrize(
    "odd",
    [{"usages": None}, {"usages": (CLIENT_AUTH, SERVER_AUTH)}, {"cn": "a\0b"}, {"seconds": 3650 * 86400}],
)
def test_what_tls_lets_through_the_profile_does_not(
    tmp_path: Path, authority: Authority, hub: Credentials, odd: dict[str, Any]
) -> None:
    pair = Pair(hub, forged(authority, tmp_path / "odd", **odd))
    pair.shake()
    shown = pair.server.getpeercert(binary_form=True)
    assert shown is not None
    with pytest.raises(CertificateRefused):
        identify(shown)


def test_the_forger_of_these_tests_makes_good_certificates_too(
    tmp_path: Path, authority: Authority, hub: Credentials
) -> None:
    pair = Pair(hub, forged(authority, tmp_path / "good"))
    pair.shake()
    assert pair.pass_on(b"x") == b"x"
    stranger = issue_odd(forge_root()).write(tmp_path / "stranger", anchors=authority.anchors)
    assert "unable to get local issuer certificate" in refused(hub, stranger)
