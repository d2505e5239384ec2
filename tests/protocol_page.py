"""What docs/protocol.md has to say, derived from the models; and the page itself, taken apart."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from message_strategies import UNIONS, members
from pydantic import AfterValidator, TypeAdapter

from consilium import messages
from consilium.codec import wire_type
from consilium.messages import MAX_SPEECH_BYTES, Message

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[1] / "docs" / "protocol.md"

TITLES = {messages.StatusRequest: "STATUS (request)", messages.Status: "STATUS (report)"}
MESSAGES = {TITLES.get(kind, wire_type(kind)): kind for union in UNIONS.values() for kind in members(union)}
PARTS = {
    kind.__name__: kind
    for kind in (messages.Meta, messages.Usage, messages.DeltaEntry, messages.Cost, messages.SeatStatus)
}
CHANNELS = {
    "control from seat": ("control", "seat"),
    "control to seat": ("control", "Arbiter"),
    "data from seat": ("data", "seat"),
    "data to seat": ("data", "Arbiter"),
    "admin from operator": ("admin", "operator"),
    "admin to operator": ("admin", "Arbiter"),
}

_PLAIN = {"bool": "boolean", "str": "string", "int": "integer", "JsonValue": "any JSON value"}
_PLAIN["Refused"] = "list of Refusal"


def type_name(said: str, kind: Any) -> str:
    """An annotation in the page's words; ``said`` as it stands in the source, ``kind`` what it means."""
    if said.endswith(" | None"):
        return type_name(said.removesuffix(" | None"), kind) + " or null"
    if said.startswith("Literal["):
        chosen = next((part for part in get_args(kind) if get_origin(part) is Literal), kind)
        return " or ".join(json.dumps(word) for word in get_args(chosen))
    if found := re.fullmatch(r"Many\[(\w+)\]", said):
        return f"list of {found[1]}"
    if found := re.fullmatch(r"dict\[(\w+), (\w+)\]", said):
        return f"map of {type_name(found[1], None)} to {type_name(found[2], None)}"
    return _PLAIN.get(said, said)


def options(kind: type[Message]) -> list[tuple[str, str, str]]:
    """Field, type and presence of every field but ``type``; a derived field is written and never read."""
    rows = []
    for name, field in kind.model_fields.items():
        if name == "type":
            continue
        default = field.get_default(call_default_factory=True)
        value = default.model_dump(exclude_none=True) if isinstance(default, Message) else default
        presence = "required" if field.is_required() else f"default `{json.dumps(value)}`"
        if field.exclude_if is not None:
            presence = "left out if null"
        rows.append((field.alias or name, type_name(kind.__annotations__[name], field.annotation), presence))
    for name in kind.model_computed_fields:
        said = getattr(kind, name).fget.__annotations__["return"]
        rows.append((name, type_name(said, None), "derived"))
    return rows


def syntax(kind: type[Message]) -> str:
    """One line that shows the whole message; ``?`` marks what may be left out."""
    fields = [f'"type": "{wire_type(kind)}"'] if "type" in kind.model_fields else []
    fields += [
        f'"{name}"{"" if presence == "required" else "?"}: {said}' for name, said, presence in options(kind)
    ]
    return "{" + ", ".join(fields) + "}"


def bounds(alias: Any) -> tuple[str, str]:
    """JSON type and bounds of a named type."""
    schema = TypeAdapter(alias).json_schema()
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if any(isinstance(rule, AfterValidator) for rule in get_args(alias)):
        return "string", f"{'1 character' if low else '0'} to {MAX_SPEECH_BYTES} bytes of UTF-8"
    if "pattern" in schema:
        return "string", f"`{schema['pattern']}`"
    if schema["type"] == "string":
        return "string", f"{low} to {high} characters"
    if schema["type"] == "integer":
        return "integer", f"{schema['minimum']} to {schema['maximum']}"
    if "maximum" in schema:
        return "number", f"{schema['minimum']:.0f} to {schema['maximum']:.0f}"
    return "number", "finite"


def sections(page: str, level: int) -> Iterator[tuple[str, str]]:
    """Heading and text of every section of one level; a section ends at a heading of its level or above."""
    heading = re.compile(rf"^#{{{level}}} (.+)$", re.MULTILINE)
    for found in heading.finditer(page):
        text = page[found.end() :]
        end = re.search(rf"^#{{1,{level}}} ", text, re.MULTILINE)
        yield found[1], text[: end.start()] if end else text


def tables(text: str) -> list[list[list[str]]]:
    """The cells of every table in ``text``, heading and rule left out."""
    found = re.findall(r"(?:^\|.*\n)+", text + "\n", re.MULTILINE)
    return [
        [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows.splitlines()[2:]]
        for rows in found
    ]


def option_table(text: str) -> list[list[str]]:
    """The options in the description of one message; none where it has no fields."""
    return next(iter(tables(text)), [])
