"""`consilium.bundle`: a folder or a file to credentials that TLS takes, and no key on any disk."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from certificates import Forged, forge_root, issue_odd, key_usage
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from edge_kit import Council, tls

from consilium.bundle import MAX_BYTES, open_bundle
from consilium.credentials import Credentials
from consilium.errors import UserError
from consilium.identity import fingerprint
from consilium.tls import client_context
from pki.build import Signer

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = b"correct horse"
ROOT = forge_root()
SEAT = issue_odd(ROOT)
UPPER = issue_odd(
    ROOT,
    cn="upper",
    usage=key_usage("key_cert_sign"),
    usages=None,
    names=[],
    constraints=x509.BasicConstraints(ca=True, path_length=1),
)
LOWER = issue_odd(
    Signer(UPPER.certificate, UPPER.key),  # type: ignore[arg-type]  # a P-256 key, as asked for
    cn="lower",
    usage=key_usage("key_cert_sign"),
    usages=None,
    names=[],
    constraints=x509.BasicConstraints(ca=True, path_length=0),
)
BELOW = issue_odd(Signer(LOWER.certificate, LOWER.key))  # type: ignore[arg-type]  # as above


def pem_of(der: bytes) -> bytes:
    import ssl  # noqa: PLC0415 - for this one function

    return ssl.DER_cert_to_PEM_cert(der).encode()


def secrecy(secret: bytes) -> KeySerializationEncryption:
    return BestAvailableEncryption(secret) if secret else NoEncryption()


def p12(holder: Forged, *others: x509.Certificate, secret: bytes = b"") -> bytes:
    key: Any = holder.key
    return pkcs12.serialize_key_and_certificates(b"seat", key, holder.certificate, others, secrecy(secret))


def pem(holder: Forged, *others: x509.Certificate, secret: bytes = b"") -> bytes:
    key = holder.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secrecy(secret))
    return key + holder.pem + b"".join(other.public_bytes(Encoding.PEM) for other in others)


def write(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def never() -> bytes:
    raise AssertionError("the passphrase was asked for")


def subjects(credentials: Credentials) -> list[str]:
    found = x509.load_pem_x509_certificates(credentials.cert.read_bytes())
    return [str(each.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value) for each in found]


def test_a_folder_is_what_it_is(tmp_path: Path) -> None:
    SEAT.write(tmp_path / "seat")
    with open_bundle(tmp_path / "seat", never) as found:
        assert found == Credentials.load(tmp_path / "seat")


def test_a_folder_that_is_not_whole_is_refused_as_ever(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cert\.pem is missing"), open_bundle(tmp_path):
        pass


@pytest.mark.parametrize("secret", [b"", KEY])
@pytest.mark.parametrize("packed", [p12, pem])
def test_a_file_has_what_a_folder_has(tmp_path: Path, packed: Callable[..., bytes], secret: bytes) -> None:
    path = write(tmp_path / "bundle", packed(SEAT, ROOT.certificate, secret=secret))
    asked: list[int] = []

    def ask() -> bytes:
        asked.append(1)
        return secret

    with open_bundle(path, ask) as found:
        assert found.fingerprint() == fingerprint(SEAT.der)
        assert found.ca.read_bytes() == SEAT.anchors
        context = client_context(found)
    assert len(context.get_ca_certs()) == 1
    assert len(asked) == (1 if secret else 0)


@pytest.mark.anyio
@pytest.mark.parametrize("packed", [p12, pem])
async def test_what_is_opened_shakes_hands_with_an_arbiter(
    tmp_path: Path, packed: Callable[..., bytes]
) -> None:
    council = Council(tmp_path)
    holder = issue_odd(council.root)
    path = write(tmp_path / "bundle", packed(holder, council.root.certificate))
    with open_bundle(path) as found:
        context = client_context(found)
    async with tls(council, client=context) as ends:
        assert ends.server.peer_der == holder.der


@pytest.mark.parametrize("packed", [p12, pem])
def test_the_chain_is_put_in_order_and_the_anchor_apart(tmp_path: Path, packed: Callable[..., bytes]) -> None:
    stranger = issue_odd(ROOT, cn="stranger").certificate
    others = (ROOT.certificate, UPPER.certificate, stranger, LOWER.certificate)
    path = write(tmp_path / "bundle", packed(BELOW, *others))
    with open_bundle(path) as found:
        assert subjects(found) == ["seat", "lower", "upper"]
        assert found.ca.read_bytes() == SEAT.anchors


def test_the_leaf_may_stand_anywhere_in_a_pem_file_and_comments_too(tmp_path: Path) -> None:
    content = b"# mine\n" + ROOT.certificate.public_bytes(Encoding.PEM) + SEAT.pem + b"note\n" + SEAT.key_pem
    with open_bundle(write(tmp_path / "bundle", content)) as found:
        assert subjects(found) == ["seat"]


def test_the_parts_are_in_memory_and_are_gone_afterwards(tmp_path: Path) -> None:
    path = write(tmp_path / "bundle", p12(SEAT, ROOT.certificate))
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the folder itself takes a descriptor
    with open_bundle(path) as found:
        for part in (found.cert, found.key, found.ca):
            assert str(part.readlink()).startswith("/memfd:")
            assert stat.S_IMODE(part.stat().st_mode) == 0o600
        assert b"BEGIN PRIVATE KEY" in found.key.read_bytes()
        assert os.listdir(tmp_path) == ["bundle"]  # noqa: PTH208 - names are enough
    assert set(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_no_program_that_is_started_meanwhile_inherits_them(tmp_path: Path) -> None:
    path = write(tmp_path / "bundle", p12(SEAT, ROOT.certificate))
    with open_bundle(path):
        seen = subprocess.run(
            ["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True, close_fds=False
        )
    assert "memfd" not in seen.stdout


def test_a_failure_in_the_block_leaves_nothing_open(tmp_path: Path) -> None:
    path = write(tmp_path / "bundle", p12(SEAT, ROOT.certificate))
    with pytest.raises(KeyError), open_bundle(path) as found:
        raise KeyError(found)
    assert not found.key.exists()


BROKEN_KEY = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
LOCKED = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"
BROKEN_CERT = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "is neither a PKCS#12 nor a PEM file"),
    "text": (b"hello\n", "is neither a PKCS#12 nor a PEM file"),
    "DER of another kind": (SEAT.der, "cannot be opened\n  the passphrase is wrong, or the file is damaged"),
    "a cut file": (p12(SEAT, ROOT.certificate)[:200], "cannot be opened"),
    "another passphrase": (p12(SEAT, ROOT.certificate, secret=b"other"), "cannot be opened"),
    "another passphrase of a PEM": (pem(SEAT, ROOT.certificate, secret=b"other"), "cannot be opened"),
    "an encrypted key that is none": (LOCKED + SEAT.pem, "holds a private key that cannot be read"),
    "a key that is none": (BROKEN_KEY + SEAT.pem, "holds a private key that cannot be read"),
    "no key": (SEAT.pem + SEAT.anchors, "holds no private key"),
    "no key in PKCS#12": (
        pkcs12.serialize_key_and_certificates(None, None, None, [SEAT.certificate], NoEncryption()),
        "holds no private key",
    ),
    "no certificate": (SEAT.key_pem, "holds no certificate that can be read"),
    "a certificate that is none": (SEAT.key_pem + BROKEN_CERT, "holds no certificate that can be read"),
    "a certificate of a version that nobody knows": (
        SEAT.key_pem + pem_of(SEAT.der.replace(b"\x02\x01\x02", b"\x02\x01\x07", 1)),
        "holds no certificate that can be read",
    ),
    "another's certificate": (
        SEAT.key_pem + issue_odd(ROOT).pem + SEAT.anchors,
        "does not hold the certificate of its key",
    ),
    "no authority": (p12(SEAT), "holds no certificate of an authority, so whom to trust"),
    "no authority in PEM": (pem(SEAT), "holds no certificate of an authority, so whom to trust"),
    "too much": (b"0" * (MAX_BYTES + 1), "is too large to be a bundle"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_whole_bundle_is_one_sentence_that_names_it(tmp_path: Path, kind: str) -> None:
    content, sentence = REFUSED[kind]
    path = write(tmp_path / "bundle", content)
    with pytest.raises(UserError) as refusal, open_bundle(path, lambda: KEY):
        pass
    assert str(refusal.value).startswith(f"{path} {sentence}")
    assert "AAAA" not in str(refusal.value)
    assert refusal.value.__cause__ is None


def test_a_certificate_that_cannot_be_read_to_its_end_is_refused(tmp_path: Path) -> None:
    twice = bytearray(SEAT.der)
    at = twice.index(b"spiffe://")
    twice[at] = 0xFF  # no letter of a URI
    content = SEAT.key_pem + SEAT.anchors + pem_of(bytes(twice))
    with pytest.raises(UserError, match="holds a certificate of another kind: it cannot be read"):  # noqa: SIM117
        with open_bundle(write(tmp_path / "bundle", content)):
            pass


@pytest.mark.parametrize("packed", [p12, pem])
def test_a_passphrase_that_nobody_can_give_is_said_to_be_needed(
    tmp_path: Path, packed: Callable[..., bytes]
) -> None:
    path = write(tmp_path / "bundle", packed(SEAT, ROOT.certificate, secret=KEY))
    with (
        pytest.raises(UserError, match="is protected by a passphrase, and none was given"),
        open_bundle(path),
    ):
        pass


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_a_file_that_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path / "bundle", p12(SEAT, ROOT.certificate))
    path.chmod(mode)
    with pytest.raises(UserError, match="is open to other users") as refusal, open_bundle(path):
        pass
    assert refusal.value.hint == f"chmod 600 {path}"


def test_a_named_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bundle", 0o600)
    with pytest.raises(UserError, match="is neither a file nor a folder"), open_bundle(tmp_path / "bundle"):
        pass


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere cannot be read: No such file"):  # noqa: SIM117
        with open_bundle(tmp_path / "nowhere"):
            pass


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("secret", ["", "correct horse"])
def test_what_openssl_exports_is_opened(tmp_path: Path, secret: str) -> None:
    folder = SEAT.write(tmp_path / "seat")
    path = tmp_path / "bundle.p12"
    path.touch(mode=0o600)
    parts = {"-in": folder.cert, "-inkey": folder.key, "-certfile": folder.ca, "-out": path}
    told = [str(word) for pair in parts.items() for word in pair]
    command = ["openssl", "pkcs12", "-export", *told, "-passout", f"pass:{secret}"]
    subprocess.run(command, check=True, capture_output=True)
    with open_bundle(path, secret.encode if secret else never) as found:
        assert found.fingerprint() == fingerprint(SEAT.der)
        assert found.ca.read_bytes() == SEAT.anchors


def test_a_folder_is_opened_without_loading_cryptography(tmp_path: Path) -> None:
    SEAT.write(tmp_path / "seat")
    code = (
        "import sys; from pathlib import Path; from consilium.bundle import open_bundle\n"
        f"with open_bundle(Path({str(tmp_path / 'seat')!r})): pass\n"
        "sys.exit('cryptography' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
