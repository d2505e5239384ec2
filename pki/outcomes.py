"""What came of a command that revokes, or that makes revocation lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pki.index import Lists, Record


@dataclass(frozen=True, slots=True)
class Published:
    """New revocation lists: where they were written, and where they could not be (path to why)."""

    lists: Lists
    written: tuple[Path, ...]
    failed: dict[Path, str]


@dataclass(frozen=True, slots=True)
class Revocation:
    """What one call revoked; ``before`` was revoked already, and keeps its date and reason."""

    records: tuple[Record, ...]
    before: tuple[Record, ...]
    published: Published
