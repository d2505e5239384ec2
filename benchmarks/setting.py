"""What every measurement is given: how much to do, a council's certificates, and a folder on a disk."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import machine
from benchmarks.hosts.common import HOST
from benchmarks.process import ROOT
from consilium.tls import client_context
from pki.authority import Authority

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from consilium.credentials import Credentials

RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True, slots=True)
class Setting:
    """``quick`` trades precision for time. ``seat`` is the TLS context of every scripted seat.

    ``certs`` is the Arbiter's folder, ``credentials`` is what ``seat`` was made of.
    """

    quick: bool
    folder: Path
    certs: Path
    credentials: Credentials
    seat: ssl.SSLContext

    @property
    def rounds(self) -> int:
        """How often subject and reference take turns."""
        return 5 if self.quick else 9

    def some(self, full: int) -> int:
        """``full`` repetitions of something, or a quarter of them."""
        return full // 4 if self.quick else full

    @property
    def no_disk(self) -> str | None:
        """Why nothing about syncs can be measured in ``folder``, if that is so."""
        kind = machine.filesystem(self.folder)
        if kind in machine.MEMORY_FILESYSTEMS:
            return f"{self.folder.parent} is on {kind}, where a sync does nothing"
        return None


@contextmanager
def prepared(*, quick: bool) -> Iterator[Setting]:
    """Make throw-away certificates and a folder beside the results; remove both at the end."""
    RESULTS.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=RESULTS))
    try:
        authority = Authority.create(folder / "pki")
        authority.issue("arbiter", profile="arbiter", ips=[HOST])
        seat = authority.issue("seat", profile="participant")
        yield Setting(quick, folder, folder / "pki" / "arbiter", seat, client_context(seat))
    finally:
        shutil.rmtree(folder)
