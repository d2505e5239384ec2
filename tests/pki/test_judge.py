"""What revocation lists say of a chain: every way in which they can fail to clear it, by kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from certificates import DAY, forge_root, issue_odd
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from consilium.certificate import Finding
from pki.build import Revoked, Signer, build_crl, build_intermediate
from pki.revocation import judge

NOW = 1_800_000_000.0
ROOT = forge_root(now=NOW)


def below(root: Signer) -> Signer:
    key = ec.generate_private_key(ec.SECP256R1())
    made = build_intermediate(
        root,
        key.public_key(),
        issuer="participants",
        trust_domain="council.local",
        serial=7,
        now=NOW,
        days=90,
    )
    return Signer(made, key)


SEATS = below(ROOT)
SEAT = issue_odd(SEATS, now=NOW).certificate
CHAIN = [SEAT, SEATS.certificate, ROOT.certificate]


def crl(
    signer: Signer, *revoked: Revoked, number: int = 5, start: float = -300, end: float = 30 * DAY
) -> Any:
    return build_crl(signer, revoked, number=number, this_update=int(NOW + start), next_update=int(NOW + end))


def odd_crl(signer: Signer) -> Any:
    """A list without a number."""
    at = datetime.fromtimestamp(NOW - 300, UTC)
    entry = x509.RevokedCertificateBuilder().serial_number(1).revocation_date(at).build()
    return (
        x509.CertificateRevocationListBuilder()
        .issuer_name(signer.certificate.subject)
        .last_update(at)
        .next_update(datetime.fromtimestamp(NOW + DAY, UTC))
        .add_revoked_certificate(entry)
        .sign(signer.key, hashes.SHA256())
    )


def endless(signer: Signer) -> Any:
    """A list that does not say when it ends: RFC 5280 forbids it, and X.509 does not."""
    whole = crl(signer)
    body = whole.tbs_certlist_bytes
    until = b"\x17\x0d" + whole.next_update_utc.strftime("%y%m%d%H%M%SZ").encode()
    assert body.count(until) == 1
    header = 2 + (body[1] & 0x7F if body[1] & 0x80 else 0)
    body = sequence(body[header:].replace(until, b""))
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")  # ecdsa-with-SHA256
    signature = b"\0" + signer.key.sign(body, ec.ECDSA(hashes.SHA256()))
    return x509.load_der_x509_crl(sequence(body + algorithm + bytes([3, len(signature)]) + signature))


def sequence(content: bytes) -> bytes:
    size = len(content)
    return (b"\x30\x82" + size.to_bytes(2) if size > 255 else b"\x30\x81" + size.to_bytes(1)) + content


GONE = Revoked(SEAT.serial_number, int(NOW - 3600), "key-compromise")
SILENT = Revoked(SEAT.serial_number, int(NOW - 3600), "unspecified")
STRANGER = Signer(below(forge_root(now=NOW)).certificate, ec.generate_private_key(ec.SECP256R1()))
IMPOSTOR = Signer(SEATS.certificate, ec.generate_private_key(ec.SECP256R1()))


@dataclass(frozen=True)
class Case:
    lists: list[Any]
    seat: str
    above: str = "not revoked, says list 5 of Consilium CA council.local, for another 30 days"
    ok: tuple[bool, bool] = field(default=(False, True))


BY = "Consilium participants (council.local)"
CASES: dict[str, Case] = {
    "good": Case(
        [crl(ROOT), crl(SEATS)],
        f"seat: not revoked, says list 5 of {BY}, for another 30 days",
        ok=(True, True),
    ),
    "revoked, with a reason": Case(
        [crl(ROOT), crl(SEATS, GONE)],
        "seat was revoked 60 minutes ago (2027-01-15 07:00:00 UTC, reason: key-compromise), "
        f"says list 5 of {BY}",
    ),
    "revoked, without a reason": Case(
        [crl(ROOT), crl(SEATS, SILENT)],
        f"seat was revoked 60 minutes ago (2027-01-15 07:00:00 UTC), says list 5 of {BY}",
    ),
    "revoked, on a list that is too old": Case(
        [crl(ROOT), crl(SEATS, GONE, start=-9 * DAY, end=-DAY)], "seat was revoked 60 minutes ago"
    ),
    "another was revoked": Case(
        [crl(ROOT), crl(SEATS, Revoked(1, int(NOW), "superseded"))], "seat: not revoked", ok=(True, True)
    ),
    "too old": Case(
        [crl(ROOT), crl(SEATS, start=-9 * DAY, end=-3 * DAY)],
        f"seat: list 5 of {BY} is too old by 3 days (2027-01-12 08:00:00 UTC), and admits nobody",
    ),
    "ends this very second": Case([crl(ROOT), crl(SEATS, end=0)], "is too old by 0 seconds"),
    "not begun": Case(
        [crl(ROOT), crl(SEATS, start=7200)],
        f"seat: list 5 of {BY} begins 2 hours from now; is this clock right?",
    ),
    "missing": Case([crl(ROOT)], f"seat: there is no revocation list of {BY} here"),
    "forged": Case(
        [crl(ROOT), crl(IMPOSTOR)], f"seat: a revocation list calls itself that of {BY}, who did not sign it"
    ),
    "forged beside a good one": Case(
        [crl(ROOT), crl(IMPOSTOR, GONE), crl(SEATS)], "seat: not revoked", ok=(True, True)
    ),
    "of another of the same name": Case([crl(ROOT), crl(STRANGER)], "who did not sign it"),
    "two, the later counts": Case(
        [crl(ROOT), crl(SEATS, GONE, number=6, start=-200), crl(SEATS)], f"says list 6 of {BY}"
    ),
    "the root's is missing": Case(
        [crl(SEATS)],
        "seat: not revoked",
        "there is no revocation list of Consilium CA council.local",
        (True, False),
    ),
    "the intermediate was revoked": Case(
        [crl(ROOT, Revoked(7, int(NOW - 60), "superseded")), crl(SEATS)],
        "seat: not revoked",
        f"{BY} was revoked 60 seconds ago",
        (True, False),
    ),
    "without an end": Case([crl(ROOT), endless(SEATS)], "is too old by 5 minutes"),
    "without a number": Case([crl(ROOT), odd_crl(SEATS)], f"says the list of {BY}", ok=(True, True)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_lists_say_of_a_chain(case: Case) -> None:
    seat, above = judge(CHAIN, case.lists, now=NOW)
    assert case.seat in seat.sentence
    assert case.above in above.sentence
    assert (seat.ok, above.ok) == case.ok
    assert {seat.check, above.check} == {"revocation"}


def test_what_is_itself_trusted_is_on_no_list() -> None:
    assert judge([ROOT.certificate], [], now=NOW) == []


def test_a_signer_with_a_key_of_another_kind_has_signed_nothing_of_ours() -> None:
    rsa = issue_odd(ROOT, now=NOW, key="RSA").certificate
    named = x509.CertificateRevocationListBuilder().issuer_name(rsa.subject)
    at = datetime.fromtimestamp(NOW, UTC)
    made = named.last_update(at).next_update(at.replace(year=2028)).sign(ROOT.key, hashes.SHA256())
    (finding,) = judge([SEAT, rsa], [made], now=NOW)
    assert finding == Finding(
        "revocation",
        ok=False,
        sentence="seat: a revocation list calls itself that of seat, who did not sign it",
    )
