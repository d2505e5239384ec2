"""A head is signed by an Arbiter, and a check says exactly what the signature proves."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
import seals
import transcripts
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.credentials import Credentials
from consilium.errors import UserError
from consilium.headseal import HeadSigner, Verdict, check
from consilium.records import Head

if TYPE_CHECKING:
    from pathlib import Path

AT = datetime.fromtimestamp(transcripts.START, UTC)
HEAD = transcripts.head_of(transcripts.sealed(transcripts.debate()))


def test_a_signed_head_is_good_and_names_its_signer() -> None:
    arbiter = seals.arbiter()
    seal = check(arbiter.signer.sign(HEAD), authority=arbiter.authority, at=AT)
    assert (seal.signature, seal.issuer, seal.signer) == (Verdict.GOOD, Verdict.GOOD, seals.NAME)
    assert "revocation was not asked" in seal.sentence


def test_signing_changes_nothing_that_the_head_says() -> None:
    signed = seals.arbiter().signer.sign(HEAD)
    assert signed.model_copy(update={"certificate": "", "signature": ""}) == HEAD
    assert signed.certificate.encode() == seals.arbiter().certificate


def test_without_an_authority_it_is_said_that_anybody_can_make_a_certificate() -> None:
    seal = check(seals.arbiter().signer.sign(HEAD))
    assert (seal.signature, seal.issuer) == (Verdict.GOOD, Verdict.NOT_CHECKED)
    assert "does not prove who holds that certificate" in seal.sentence


def test_without_a_time_the_authority_is_not_asked() -> None:
    arbiter = seals.arbiter()
    assert check(arbiter.signer.sign(HEAD), authority=arbiter.authority).issuer is Verdict.NOT_CHECKED


def test_an_unsigned_head_is_bad() -> None:
    seal = check(HEAD)
    assert (seal.signature, seal.issuer, seal.signer) == (Verdict.BAD, Verdict.NOT_CHECKED, None)
    assert seal.sentence == "it is not signed"


@pytest.mark.parametrize("field", ["debate_id", "last"])
def test_an_edited_head_is_bad(field: str) -> None:
    signed = seals.arbiter().signer.sign(HEAD)
    edited = signed.model_copy(update={field: "x"})
    assert check(edited).signature is Verdict.BAD
    assert "edited" in check(edited).sentence


def test_a_head_whose_certificate_was_exchanged_is_bad() -> None:
    signed = seals.arbiter().signer.sign(HEAD)
    other = seals.holder(seals.council(), seals.arbiter_leaf())
    exchanged = signed.model_copy(update={"certificate": other.certificate.decode()})
    assert check(exchanged).signature is Verdict.BAD


def test_a_seat_of_the_same_authority_cannot_vouch() -> None:
    seat = seals.seat()
    seal = check(seat.signer.sign(HEAD), authority=seat.authority, at=AT)
    assert (seal.signature, seal.issuer, seal.signer) == (Verdict.GOOD, Verdict.BAD, None)
    assert "not an Arbiter's" in seal.sentence


def test_an_arbiter_of_another_authority_is_refused() -> None:
    stranger = seals.holder(seals.authority(), seals.arbiter_leaf())
    seal = check(stranger.signer.sign(HEAD), authority=seals.arbiter().authority, at=AT)
    assert (seal.signature, seal.issuer) == (Verdict.GOOD, Verdict.BAD)
    assert "did not issue that" in seal.sentence


@pytest.mark.parametrize("days", [-1, 31])
def test_a_certificate_that_did_not_hold_at_the_time_of_the_file_is_refused(days: int) -> None:
    arbiter = seals.arbiter()
    seal = check(arbiter.signer.sign(HEAD), authority=arbiter.authority, at=AT + timedelta(days=days))
    assert seal.issuer is Verdict.BAD


def test_one_of_several_authorities_is_enough() -> None:
    arbiter = seals.arbiter()
    both = seals.pem(seals.authority().certificate) + arbiter.authority
    assert check(arbiter.signer.sign(HEAD), authority=both, at=AT).issuer is Verdict.GOOD


@pytest.mark.parametrize(
    ("hosts", "issuer"),
    [
        ([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))], Verdict.GOOD),
        ([x509.DNSName("not_a_host"), x509.DNSName("arbiter")], Verdict.GOOD),
        ([x509.DNSName("not_a_host")], Verdict.BAD),
    ],
)
def test_any_name_of_the_arbiter_serves_to_check_it(hosts: list[x509.GeneralName], issuer: Verdict) -> None:
    arbiter = seals.holder(seals.council(), seals.arbiter_leaf(hosts))
    assert check(arbiter.signer.sign(HEAD), authority=arbiter.authority, at=AT).issuer is issuer


def test_an_authority_file_without_a_certificate_is_the_users_to_mend() -> None:
    with pytest.raises(UserError, match="holds no certificate") as caught:
        check(HEAD, authority=b"nothing here")
    assert "ca.pem" in caught.value.hint


@given(signature=st.text(max_size=60), certificate=st.text(max_size=60))
@settings(max_examples=60)
def test_nothing_in_a_head_upsets_the_check(signature: str, certificate: str) -> None:
    real = seals.arbiter().signer.sign(HEAD)
    assert check(real.model_copy(update={"signature": signature})).signature is Verdict.BAD
    assert check(real.model_copy(update={"certificate": certificate})).signature is Verdict.BAD


def test_a_certificate_of_another_kind_of_key_is_bad() -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    name = x509.Name([])
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, AT, AT + timedelta(days=1)).sign(
        key, None
    )
    head = HEAD.model_copy(update={"certificate": seals.pem(certificate).decode(), "signature": "AAAA"})
    seal = check(head)
    assert seal.signature is Verdict.BAD
    assert "elliptic curve" in seal.sentence


# --- the signer --------------------------------------------------------------------------------------


def folder(path: Path, *, key: bytes, certificate: bytes) -> Credentials:
    for name, content in (("key.pem", key), ("cert.pem", certificate), ("ca.pem", seals.arbiter().authority)):
        (path / name).write_bytes(content)
        (path / name).chmod(0o600)
    return Credentials.load(path)


def test_a_signer_comes_from_the_folder_of_the_arbiters_credentials(tmp_path: Path) -> None:
    arbiter = seals.arbiter()
    signer = HeadSigner.load(
        folder(tmp_path, key=arbiter.key, certificate=b"comment\n" + arbiter.certificate)
    )
    assert check(signer.sign(HEAD)).signature is Verdict.GOOD
    assert "comment" not in signer.certificate


def test_a_key_that_is_not_the_certificates_is_refused(tmp_path: Path) -> None:
    credentials = folder(tmp_path, key=seals.seat().key, certificate=seals.arbiter().certificate)
    with pytest.raises(UserError, match="not that of the certificate"):
        HeadSigner.load(credentials)


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    key = seals.key_pem(ed25519.Ed25519PrivateKey.generate())
    with pytest.raises(UserError, match="not an elliptic curve key"):
        HeadSigner.load(folder(tmp_path, key=key, certificate=seals.arbiter().certificate))


def test_a_key_with_a_password_is_refused(tmp_path: Path) -> None:
    locked = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    with pytest.raises(UserError, match="private key cannot be used"):
        HeadSigner.load(folder(tmp_path, key=locked, certificate=seals.arbiter().certificate))


def test_files_that_hold_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=str(tmp_path)):
        HeadSigner.load(folder(tmp_path, key=seals.arbiter().key, certificate=b"no"))


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    credentials = folder(tmp_path, key=seals.arbiter().key, certificate=seals.arbiter().certificate)
    credentials.cert.unlink()
    with pytest.raises(UserError, match=r"cert\.pem cannot be read"):
        HeadSigner.load(credentials)


def test_a_head_that_was_signed_stays_a_head() -> None:
    signed = seals.arbiter().signer.sign(HEAD)
    assert Head.model_validate_json(signed.model_dump_json()) == signed
