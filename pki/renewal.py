"""Renewing what is about to end: one holder, or everything of an authority that is still in its folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consilium.certificate import span
from consilium.errors import UserError
from pki.listing import fields

if TYPE_CHECKING:
    from pki.authority import Authority
    from pki.index import Record
    from pki.outcomes import Published


@dataclass(frozen=True, slots=True)
class Renewals:
    """What came of it. ``renewed`` pairs what a holder has now with what it had; the others say why not."""

    renewed: tuple[tuple[Record, Record], ...]
    kept: dict[str, str]
    refused: dict[str, str]
    published: Published | None

    def as_json(self, now: float) -> dict[str, Any]:
        """The same in a form that a program reads."""
        published = self.published
        return {
            "renewed": [fields(new, now, replaces=old.serial) for new, old in self.renewed],
            "kept": self.kept,
            "refused": self.refused,
            "lists": None if published is None else published.lists.model_dump(mode="json"),
            "failed": {} if published is None else {str(path): why for path, why in published.failed.items()},
        }

    def as_text(self, now: float) -> str:
        """The same in lines that a person reads."""
        lines = []
        for new, old in self.renewed:
            left = span(new.not_after - now)
            lines.append(f"{'renewed':13}{new.name}_{new.suffix}, ends in {left} (before: _{old.suffix})\n")
        lines += [f"{'kept':13}{name}: {why}\n" for name, why in self.kept.items()]
        lines += [f"{'FAILED':13}{name}: {why}\n" for name, why in self.refused.items()]
        return "".join(lines)


def renew(
    authority: Authority, name: str | None, *, within: int | None, days: int | None, revoke: bool
) -> Renewals:
    """Renew ``name``, or without one every holder that can be, and then the revocation lists too.

    ``within``: only what ends within so many days, or whose files cannot be used. ``revoke``: what was
    replaced is revoked, as superseded. Raises `UserError`; for a holder among all, it is told in its place.
    """
    if within is not None and within < 0:
        raise UserError(f"--if-within {within}: that is in the past", hint="0 renews what has ended")
    renewed: list[tuple[Record, Record]] = []
    kept: dict[str, str] = {}
    refused: dict[str, str] = {}
    published = None
    for each in authority.index.names() if name is None else [name]:
        old = authority.index.latest(each)
        if name is None and (why := _passed_over(authority, each, old)):
            kept[each] = why
            continue
        try:
            new = authority.renew(each, days=days, within=within)
        except UserError as refusal:
            if name is not None:
                raise
            refused[each] = refusal.message
            continue
        if old is None or new is None:
            left = 0 if old is None else old.not_after - authority.clock()
            kept[each] = f"ends in {span(left)}"
            continue
        renewed.append((new, old))
        if revoke:
            published = authority.revoke(old.serial, reason="superseded").published
    if name is None and published is None:
        published = authority.refresh(within=0 if within is None else within)
    return Renewals(tuple(renewed), kept, refused, published)


def _passed_over(authority: Authority, name: str, last: Record | None) -> str:
    """Why a holder is not among all that are renewed; empty if it is."""
    if last is not None and last.revoked is not None:
        return "was revoked"
    if not os.path.lexists(authority.folder / name):
        return f"is not in {authority.folder}"
    return ""
