"""What an authority has issued and revoked: one small file, replaced whole. Pure: time is an argument.

1. It is written before what it speaks of: a certificate that exists is listed, whatever was interrupted.
2. A number of a revocation list is never used twice, and no list begins before the one it replaces.
3. It holds no secret, and yet says who takes part: its file is its owner's only.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

import orjson
from pydantic import Field, StringConstraints

from consilium.config import Section
from consilium.identity import DAY
from pki.build import BACKDATE_S, Revoked
from pki.terms import CRL_DAYS, Issuer, Reason

Hex = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]+$")]
Second = Annotated[int, Field(ge=0)]
"""Whole seconds since the epoch."""

SHORTEST = 8
"""Digits of a fingerprint that name a certificate: as many as a display name ends with (§5.2)."""

_FINGERPRINT = re.compile(r"(?:[a-z0-9_]*_)?([0-9a-f]{8,64})")


class ListsBehind(ValueError):  # noqa: N818 - what is the matter, and not only that something is
    """Raised when a new revocation list would begin in the future: this clock is behind the last list."""


class Record(Section):
    """One certificate. ``days`` is the lifetime that was asked for, to be given again on renewal."""

    name: str
    profile: str
    issuer: Issuer
    uri: str
    dns: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    days: int
    serial: Hex
    fingerprint: Hex
    not_before: Second
    not_after: Second
    revoked: Second | None = None
    reason: Reason | None = None

    def ends_within(self, now: float, days: float) -> bool:
        """Whether it has ended in ``days`` from ``now``."""
        return self.not_after - now <= days * DAY

    @property
    def suffix(self) -> str:
        """What a display name ends with, in STATUS too (§5.2)."""
        return self.fingerprint[:8].upper()


class Lists(Section):
    """The revocation lists that are current; all of an authority's are made together."""

    number: Annotated[int, Field(ge=1)]
    this_update: Second
    next_update: Second
    days: Annotated[int, Field(ge=1)]

    @classmethod
    def first(cls, now: float, days: int = CRL_DAYS) -> Self:
        """Those of a new authority."""
        start = int(now) - BACKDATE_S
        return cls(number=1, this_update=start, next_update=int(now) + days * DAY, days=days)

    def following(self, now: float, days: int | None = None) -> Lists:
        """Those that take the place of these. Without ``days``, they are good for as long as these were.

        Of two lists that begin in the same second, whoever has read the first ignores the second: hence each
        begins at least a second after the last, and all a few minutes in the past, to have room for that.
        Raises `ListsBehind` when there is none left, which takes a clock that was put back.
        """
        start = max(int(now) - BACKDATE_S, self.this_update + 1)
        if start > now:
            raise ListsBehind(f"the last revocation list begins {start - now:.0f} seconds from now")
        good = self.days if days is None else days
        return Lists(number=self.number + 1, this_update=start, next_update=int(now) + good * DAY, days=good)

    def end_within(self, now: float, days: float) -> bool:
        """Whether they are too old in ``days`` from ``now``."""
        return self.next_update - now <= days * DAY


class Index(Section):
    """Every certificate of an authority, in the order in which they were issued."""

    version: Literal[1] = 1
    lists: Lists
    issued: tuple[Record, ...] = ()

    @classmethod
    def read(cls, content: bytes) -> Self:
        """The inverse of `written`. Raises `ValueError` for anything else."""
        return cls.model_validate_json(content, strict=True)

    def written(self) -> bytes:
        """One object, a line for each field, for a person who has to look into it."""
        tree = self.model_dump(mode="json", exclude_defaults=False)
        return orjson.dumps(tree, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def with_issued(self, record: Record) -> Index:
        """This, and one certificate more."""
        return self.model_copy(update={"issued": (*self.issued, record)})

    def with_lists(self, lists: Lists) -> Index:
        """This, with other revocation lists."""
        return self.model_copy(update={"lists": lists})

    def with_revoked(self, records: list[Record], when: float, reason: Reason) -> Index:
        """This, with ``records`` revoked. One that was revoked before keeps its date and its reason."""
        gone = {record.serial for record in records}
        mark = {"revoked": int(when), "reason": reason}
        issued = tuple(
            record.model_copy(update=mark) if record.serial in gone and record.revoked is None else record
            for record in self.issued
        )
        return self.model_copy(update={"issued": issued})

    def latest(self, name: str) -> Record | None:
        """The certificate that ``name`` was issued last."""
        return next((record for record in reversed(self.issued) if record.name == name), None)

    def names(self) -> list[str]:
        """Every holder, in the order of the first certificate."""
        return list(dict.fromkeys(record.name for record in self.issued))

    def found(self, key: str) -> list[list[Record]]:
        """What ``key`` may mean: a holder's name, a serial number, a fingerprint or its first digits.

        The digits may follow a name, as STATUS has it: ``guest_claude_9F1C22A0``. One reading, or none, or
        several that differ; each is a list of certificates, never an empty one.
        """
        digits = key.lower().replace(":", "")
        match = _FINGERPRINT.fullmatch(digits)
        start = match[1] if match else ""
        readings = [
            [record for record in self.issued if record.name == key],
            [record for record in self.issued if record.serial == digits.lstrip("0")],
            [record for record in self.issued if start and record.fingerprint.startswith(start)],
        ]
        readings[2:] = [[record] for record in readings[2]]
        different: list[list[Record]] = []
        for reading in readings:
            if reading and reading not in different:
                different.append(reading)
        return different

    def to_list(self, issuer: Issuer) -> list[Revoked]:
        """What the next revocation list of ``issuer`` names.

        A certificate leaves the list when it expired before the current list was made, so that each has
        been on a list of after its end (RFC 5280 §3.3).
        """
        since = self.lists.this_update
        return [
            Revoked(int(record.serial, 16), record.revoked, record.reason or "unspecified")
            for record in self.issued
            if record.issuer == issuer and record.revoked is not None and record.not_after >= since
        ]
