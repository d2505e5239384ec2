"""The head beside a transcript: how much of the file the Arbiter vouches for (§5.6).

It is replaced as a whole, so that a reader and a crash find the old one or the new one, and never before the
records that it vouches for are on disk.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Protocol

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from arbiter.disk import sync_folder
from consilium.errors import TranscriptError, UserError
from consilium.headseal import Verdict, check
from consilium.transcript import head_path, read_head

if TYPE_CHECKING:
    from pathlib import Path

    from arbiter.disk import Disk
    from consilium.records import Head


class Signer(Protocol):
    """Signs heads with the Arbiter's key: `consilium.headseal.HeadSigner`."""

    def sign(self, head: Head) -> Head:
        """``head`` with certificate and signature."""
        ...


class HeadFile:
    """Writes the head of ``transcript``. Raises `UserError` when that of a lost one stands in its place."""

    def __init__(self, transcript: Path, signer: Signer, disk: Disk, *, sync: bool) -> None:
        self._path = head_path(transcript)
        self._draft = self._path.with_name(self._path.name + ".new")
        self._signer = signer
        self._disk = disk
        self._sync = sync
        if os.path.lexists(self._path) and not os.path.lexists(transcript):
            raise UserError(
                f"{self._path} is the head of a transcript that is not there any more",
                hint="move it away, or give another path: it proves how long that transcript was",
            )

    def sign_with(self, signer: Signer) -> None:
        """Have every head from now on signed by ``signer``."""
        self._signer = signer

    def write(self, head: Head, *, lasting: bool) -> None:
        """Sign ``head`` and put it in place of the one before. Blocks; raises `OSError`.

        With ``lasting``, it is certain to be found after a power failure; without, perhaps the one before.
        """
        data = self._signer.sign(head).model_dump_json().encode() + b"\n"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._draft, flags, 0o600)
        try:
            if self._disk.write(descriptor, data) != len(data):
                raise OSError("only a part of it was written")
            if self._sync:
                self._disk.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        self._draft.replace(self._path)
        if self._sync and lasting:
            sync_folder(self._path)


def read_own_head(transcript: Path, signer: Signer) -> Head | None:
    """The head of ``transcript``, made by the Arbiter that ``signer`` signs for; None when there is none.

    That is whoever has its key, or had its name from the same issuer: a renewed certificate has a new key.
    Raises `UserError` when there is a head of anybody else, or one that was edited: then nothing says how
    long the transcript was.
    """
    hint = f"consilium transcript verify {shlex.quote(str(transcript))}"
    try:
        head = read_head(transcript)
    except TranscriptError as error:
        raise UserError(str(error), hint=hint) from None
    if head is None:
        return None
    seal = check(head)
    if seal.signature is not Verdict.GOOD:
        raise UserError(f"the head {head_path(transcript)} proves nothing: {seal.sentence}", hint=hint)
    if not _of_one(head, seal.signer, signer.sign(head)):
        raise UserError(
            f"the head {head_path(transcript)} was made with another key: {seal.sentence}",
            hint="give the credentials (--certs) of the Arbiter that began the debate; if they are gone, "
            "move the transcript and its head away together: another debate begins",
        )
    return head


def _of_one(head: Head, name: str | None, own: Head) -> bool:
    """Whether ``head``, with a good signature of ``name``, and ``own`` are of one Arbiter."""
    leaf = x509.load_pem_x509_certificates(head.certificate.encode())[0]
    mine, *issuers = x509.load_pem_x509_certificates(own.certificate.encode())
    if leaf.public_key() == mine.public_key():
        return True
    return name is not None and name == check(own).signer and any(_issued(leaf, by) for by in issuers)


def _issued(leaf: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
