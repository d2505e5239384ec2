"""Whom the Arbiter lets in by certificate: a table. Each row names a holder and what it hears, on every port.

To add a line is to add a test. What is refused in the handshake hears an alert. What TLS has nothing against,
and our profile of a certificate has, hears POLICY_DENIED. After each row somebody good is served by the same
process.
"""

from __future__ import annotations

import socket
import ssl
import time
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import pytest
from certificates import DAY, ODD, SERVER_AUTH, forge_root, issue_odd, uris
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from revocations import DOMAIN, Pki, intermediate, pem_of
from standing import HOST, Peer, Standing, standing

from consilium.credentials import Credentials
from consilium.identity import spiffe
from consilium.tls import client_context
from pki.build import Signer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Holder = Callable[[Pki], Credentials]

STRICT = """\
participant: {role: participant, names: ["*"], issuer: Test participants, max_lifetime_days: 30}
operator: {role: operator, may_ask_status: true, issuer: Test operators}
"""

SEAT = spiffe(DOMAIN, "participant", "good")
ADMIN = spiffe(DOMAIN, "operator", "good")


@pytest.fixture(scope="module")
def arbiter() -> Iterator[Standing]:
    def prepare(pki: Pki) -> None:
        pki.revoke(pki.issue("revoked"))

    with standing(profiles=STRICT, prepare=prepare) as made:
        yield made


def of(pki: Pki, signer: Signer, *, above: bytes | None = None, **odd: Any) -> Credentials:
    """A certificate by any signer, sent with the certificates ``above`` it."""
    forged = issue_odd(signer, **({"cn": "good", "names": uris(SEAT)} | odd))
    folder = pki.folder / f"odd-{forged.certificate.serial_number}"
    return forged.write(folder, intermediates=pem_of(signer) if above is None else above, anchors=pki.anchors)


def good_seat_as(pki: Pki, **odd: Any) -> Credentials:
    return of(pki, pki.signers["participants"], **odd)


def self_signed(pki: Pki) -> Credentials:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "good")])
    own = issue_odd(Signer(_named(subject, key), key), key=key, cn="good", names=uris(SEAT))
    return own.write(pki.folder / f"self-signed-{token_hex(4)}", anchors=pki.anchors)


def _named(subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    signer = forge_root()
    return issue_odd(signer, subject=subject, key=key).certificate


def leaf_signed(pki: Pki) -> Credentials:
    """Signed by a seat, which is no authority."""
    seat = issue_odd(pki.signers["participants"], cn="seat", names=uris(SEAT))
    assert isinstance(seat.key, ec.EllipticCurvePrivateKey)
    return of(pki, Signer(seat.certificate, seat.key), above=seat.pem + pem_of(pki.signers["participants"]))


def too_deep(pki: Pki) -> Credentials:
    """Signed by an authority below one that may have none below it."""
    below = intermediate(pki.signers["participants"], "Below")
    return of(pki, below, above=pem_of(below) + pem_of(pki.signers["participants"]))


def twin_authority(pki: Pki) -> Credentials:
    other = Pki.create(pki.folder / f"twin-{token_hex(4)}")
    return of(pki, other.signers["participants"])


def twin_sends_the_real_one(pki: Pki) -> Credentials:
    """Signed by an authority of the same name, and sent with the true authority's certificate."""
    other = Pki.create(pki.folder / f"twin-{token_hex(4)}")
    return of(pki, other.signers["participants"], above=pem_of(pki.signers["participants"]))


def odd_seat(odd: dict[str, Any]) -> Holder:
    return lambda pki: good_seat_as(pki, **({"names": uris(SEAT)} | odd))


UNKNOWN = "TLSV1_ALERT_UNKNOWN_CA"
PURPOSE = "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE"
BAD = "SSLV3_ALERT_BAD_CERTIFICATE"

IN_THE_HANDSHAKE: dict[str, tuple[Holder, str]] = {
    # who comes, and the alert
    "expired": (
        lambda pki: good_seat_as(pki, start=-2 * DAY, seconds=DAY),
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    ),
    "expired a second ago": (
        lambda pki: good_seat_as(pki, start=-61, seconds=60),
        "SSLV3_ALERT_CERTIFICATE_EXPIRED",
    ),
    "not valid yet": (lambda pki: good_seat_as(pki, start=60), BAD),
    "another authority of the same name": (twin_authority, UNKNOWN),
    "another authority behind the true one": (twin_sends_the_real_one, UNKNOWN),
    "a self-signed copy of a seat": (self_signed, UNKNOWN),
    "without the authority between": (
        lambda pki: of(pki, pki.signers["participants"], above=b""),
        UNKNOWN,
    ),
    "signed by a seat": (leaf_signed, UNKNOWN),
    "signed too far below the root": (too_deep, UNKNOWN),
    "for servers": (lambda pki: good_seat_as(pki, usages=(SERVER_AUTH,)), PURPOSE),
    "the Arbiter's own": (lambda pki: pki.own, PURPOSE),
    "with an unknown critical extension": (
        lambda pki: good_seat_as(
            pki, extra=[(x509.UnrecognizedExtension(x509.ObjectIdentifier("1.2.3.4"), b"\5\0"), True)]
        ),
        "SSLV3_ALERT_CERTIFICATE_UNKNOWN",
    ),
    "revoked": (lambda pki: Credentials.load(pki.folder / "revoked"), "SSLV3_ALERT_CERTIFICATE_REVOKED"),
}

BY_THE_PROFILE: dict[str, tuple[Holder, str]] = {
    # who comes, and what the refusal says
    "no extended key usage": (lambda pki: good_seat_as(pki, usages=None), "extended key usage is missing"),
    "a profile that is not listed": (
        lambda pki: good_seat_as(pki, names=uris(spiffe(DOMAIN, "root", "good"))),
        "no capability profile is called root here",
    ),
    "a lifetime over the profile's": (
        lambda pki: good_seat_as(pki, seconds=31 * DAY),
        "the certificate lives 31 days; profile participant accepts 30",
    ),
    "signed by the authority for others": (
        lambda pki: of(pki, pki.signers["operators"]),
        "another authority signed the certificate",
    ),
    **{f"odd: {kind}": (odd_seat(odd), told) for kind, (odd, told) in ODD.items()},
}


DOORS = ("control", "data", "admin")


def hears(arbiter: Standing, door: str, credentials: Credentials) -> list[Any]:
    """Everything that a client hears that says nothing itself."""
    with Peer(arbiter.ports[door], client_context(credentials)) as peer:
        return peer.rest()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("holder", "alert"), IN_THE_HANDSHAKE.values(), ids=IN_THE_HANDSHAKE)
def test_who_is_refused_in_the_handshake(arbiter: Standing, door: str, holder: Holder, alert: str) -> None:
    assert hears(arbiter, door, holder(arbiter.pki)) == [alert]
    arbiter.serves()


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("holder", "told"), BY_THE_PROFILE.values(), ids=BY_THE_PROFILE)
def test_who_is_refused_by_the_profile(arbiter: Standing, door: str, holder: Holder, told: str) -> None:
    heard = hears(arbiter, door, holder(arbiter.pki))
    if len(heard) == 1:
        assert "_ALERT_" in heard[0], "TLS has something against it too"
    else:
        error, end = heard
        assert (error["type"], error["code"], end) == ("ERROR", "POLICY_DENIED", "closed")
        assert told in error["message"]
    arbiter.serves()


@pytest.mark.parametrize("door", DOORS)
def test_who_has_no_certificate_is_asked_for_one_and_takes_one_line_of_the_log(
    arbiter: Standing, door: str
) -> None:
    before = arbiter.log().count("sent no certificate")
    anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anonymous.load_verify_locations(arbiter.seat.ca)
    with Peer(arbiter.ports[door], anonymous) as peer:
        assert peer.rest() == ["TLSV13_ALERT_CERTIFICATE_REQUIRED"]
    assert arbiter.log().count("sent no certificate") <= before + 1
    arbiter.serves()


@pytest.mark.parametrize(
    ("door", "cn", "uri", "welcome"),
    [
        ("admin", "admin", SEAT, False),
        ("control", "admin", SEAT, True),
        ("admin", "spiffe://council.local/operator/x", SEAT, False),
        ("control", "good", ADMIN, False),
        ("data", "participant", ADMIN, False),
    ],
)
def test_the_uri_says_who_somebody_is_and_no_other_name(
    arbiter: Standing, door: str, cn: str, uri: str, *, welcome: bool
) -> None:
    by = "participants" if uri == SEAT else "operators"
    credentials = of(arbiter.pki, arbiter.pki.signers[by], cn=cn, names=uris(uri))
    if welcome:
        with Peer(arbiter.ports[door], client_context(credentials)) as peer:
            assert peer.ask("REG", name="named")["type"] == "REG_OK"
    else:
        error, end = hears(arbiter, door, credentials)
        assert (error["code"], end) == ("POLICY_DENIED", "closed")
        assert "may not use this channel" in error["message"]
    arbiter.serves()


def test_no_ticket_brings_anybody_back(arbiter: Standing) -> None:
    """There is none, and a session without one is no session."""
    own = arbiter.pki.issue("returning")
    context = client_context(own)
    with Peer(arbiter.ports["control"], context) as first:
        first.ask("REG", name="returning")
        session = first.tls.session
        assert session is None or not session.has_ticket
    with socket.create_connection((HOST, arbiter.ports["control"]), timeout=20) as raw:
        again = context.wrap_socket(raw, server_hostname="localhost", session=session)
        assert again.session_reused is False
        again.close()
    arbiter.pki.revoke(own)
    arbiter.pki.publish()
    eventually(lambda: hears(arbiter, "control", own) == ["SSLV3_ALERT_CERTIFICATE_REVOKED"])
    arbiter.serves()


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)
