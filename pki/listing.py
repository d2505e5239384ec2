"""What an authority has issued and revoked, in lines for a person and fields for a program. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from consilium.certificate import moment, span

if TYPE_CHECKING:
    from pki.index import Index, Lists, Record

State = Literal["valid", "not yet valid", "expired", "revoked"]


def state(record: Record, now: float) -> State:
    """What a certificate is worth at ``now``; a revoked one stays revoked after its end."""
    if record.revoked is not None:
        return "revoked"
    if now < record.not_before:
        return "not yet valid"
    return "expired" if now >= record.not_after else "valid"


def sentence(record: Record, now: float) -> str:
    """The same, and when."""
    match state(record, now):
        case "revoked":
            when = moment(record.revoked or 0)
            return f"revoked {when} ({record.reason})"
        case "expired":
            return f"expired {span(now - record.not_after)} ago"
        case "valid":
            return f"valid, ends in {span(record.not_after - now)}"
        case other:
            return other


def as_text(index: Index, now: float) -> str:
    """A line for each certificate, in the order of issue, and one for the revocation lists.

    The fingerprint is cut to what display names end with (§5.2); ``*`` marks what its holder got last.
    """
    rows = [("NAME", "PROFILE", "FINGERPRINT", "SERIAL", "STATE")]
    for record in index.issued:
        mark = " *" if index.latest(record.name) == record else ""
        told = sentence(record, now)
        rows.append((record.name + mark, record.profile, f"_{record.suffix}", record.serial, told))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]])
        for row in rows
    ]
    if not index.issued:
        lines = ["nothing was issued yet"]
    return "\n".join([*lines, f"revocation lists: {lists_sentence(index.lists, now)}", ""])


def as_json(index: Index, now: float) -> dict[str, Any]:
    """Every field; times are seconds since the epoch."""
    certificates = [
        fields(record, now, latest=index.latest(record.name) == record) for record in index.issued
    ]
    return {"lists": index.lists.model_dump(mode="json"), "certificates": certificates}


def fields(record: Record, now: float, **more: object) -> dict[str, Any]:
    """One certificate in a form that a program reads."""
    return {
        **record.model_dump(mode="json"),
        "suffix": record.suffix,
        "state": state(record, now),
        "ends_in": record.not_after - now,
        **more,
    }


def lists_sentence(lists: Lists, now: float) -> str:
    """How much the current revocation lists are still worth."""
    left = lists.next_update - now
    worth = f"good for another {span(left)}" if left > 0 else f"too old by {span(-left)}: `consilium pki crl`"
    return f"number {lists.number}, {worth}"
