"""What stands in the certificates that we make."""

from __future__ import annotations

import pytest
from certificates import DAY, forge_root
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from consilium.certificate import identify, identify_arbiter
from pki.build import BACKDATE_S, Leaf, Signer, build_leaf

NOW = 1_800_000_000.75
URI = "spiffe://council.local/participant/seat"
ROOT = forge_root(now=NOW)
KEY = ec.generate_private_key(ec.SECP256R1())


def leaf(asked: Leaf, *, signer: Signer = ROOT, now: float = NOW, days: int = 30) -> x509.Certificate:
    return build_leaf(signer, KEY.public_key(), asked, serial=77, now=now, days=days)


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.DER)


def critical(certificate: x509.Certificate) -> dict[str, bool]:
    return {type(found.value).__name__: found.critical for found in certificate.extensions}


def test_a_root_has_room_for_one_step_and_signs_no_data() -> None:
    extensions = ROOT.certificate.extensions
    constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
    usage = extensions.get_extension_for_class(x509.KeyUsage).value
    assert (constraints.ca, constraints.path_length) == (True, 1)
    assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)
    assert critical(ROOT.certificate) == {
        "SubjectKeyIdentifier": False,
        "BasicConstraints": True,
        "KeyUsage": True,
        "SubjectAlternativeName": False,
        "AuthorityKeyIdentifier": False,
    }


def test_an_authority_says_what_it_stands_for() -> None:
    names = ROOT.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert list(names) == [x509.UniformResourceIdentifier("spiffe://council.local")]


def test_an_authority_of_a_long_trust_domain_still_has_a_subject() -> None:
    domain = ".".join(["a" * 63] * 3)
    (name,) = forge_root(domain, now=NOW).certificate.subject
    assert isinstance(name.value, str)
    assert len(name.value) == 64


def test_a_clients_certificate_is_of_the_profile() -> None:
    made = leaf(Leaf.of_client("seat", URI))
    assert identify(der(made)).subject == "seat"
    assert critical(made) == {
        "SubjectKeyIdentifier": False,
        "BasicConstraints": True,
        "KeyUsage": True,
        "ExtendedKeyUsage": False,
        "SubjectAlternativeName": False,
        "AuthorityKeyIdentifier": False,
    }
    assert made.serial_number == 77


def test_an_arbiters_certificate_is_of_the_profile() -> None:
    hosts = [x509.DNSName("localhost")]
    made = leaf(Leaf.of_arbiter("hub", "spiffe://council.local/arbiter/hub", hosts))
    assert identify_arbiter(der(made)).subject == "hub"
    usages = made.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usages) == [ExtendedKeyUsageOID.SERVER_AUTH]


def test_a_leaf_points_to_the_key_that_signed_it() -> None:
    made = leaf(Leaf.of_client("seat", URI))
    made.verify_directly_issued_by(ROOT.certificate)
    theirs = ROOT.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    ours = made.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    assert ours.key_identifier == theirs.digest


@pytest.mark.parametrize("days", [1, 30, 90])
def test_the_head_start_is_taken_out_of_the_lifetime(days: int) -> None:
    made = leaf(Leaf.of_client("seat", URI), days=days)
    start = made.not_valid_before_utc.timestamp()
    assert start == int(NOW) - BACKDATE_S
    assert made.not_valid_after_utc.timestamp() - start == days * DAY
    assert identify(der(made)).lifetime_days == days


def test_a_leaf_does_not_outlive_the_one_that_signs_it() -> None:
    signer = forge_root(now=NOW, days=1)
    made = leaf(Leaf.of_client("seat", URI), signer=signer, now=NOW + 3600)
    assert made.not_valid_after_utc == signer.certificate.not_valid_after_utc
