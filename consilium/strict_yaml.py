"""YAML as a plain tree: what a person may write in a file of ours, and where each value stands.

1. No aliases, no tags, no duplicate keys, no key that is not text, bounded size and nesting.
2. A plain scalar is what it looks like: ``true`` and ``false`` are booleans and ``no`` is a word; ``12`` and
   ``1_000`` are whole numbers and ``010`` or ``1:30`` are text. There are no dates.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import yaml

from consilium.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 256 * 1024
MAX_NESTING = 16

_BREAK = re.compile("[\x85\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")

Place = tuple[str | int, ...]
"""A key path: ``("participants", 0, "name")``."""

_YAML = "tag:yaml.org,2002:"
_BREAKS = frozenset("\x85\u2028\u2029")
_LOOKS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9_]{0,18})", list("-+0123456789")),
    "float": (r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
}


class _Loader(yaml.SafeLoader):
    """Composes nodes, and refuses what a plain tree has no use for."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as PyYAML has it
    _nesting = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # the stub names no return
        if isinstance(event, yaml.AliasEvent):
            raise _Refused("aliases (*name) are not accepted: write the value out", event)
        if getattr(event, "tag", None) is not None:
            raise _Refused("tags (!name) are not accepted", event)
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise _Refused(f"nested deeper than {MAX_NESTING}", event)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._nesting -= 1
        return node


for _kind, (_pattern, _first) in _LOOKS.items():
    _Loader.add_implicit_resolver(_YAML + _kind, re.compile(f"(?:{_pattern})\\Z"), _first)


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this reader, or a reader of YAML 1.1, would not take for text."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        first: [
            *yaml.SafeDumper.yaml_implicit_resolvers.get(first, ()),
            *_Loader.yaml_implicit_resolvers.get(first, ()),
        ]
        for first in {*yaml.SafeDumper.yaml_implicit_resolvers, *_Loader.yaml_implicit_resolvers}
    }

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - a plain tree has none
        return True

    def text(self, text: str) -> yaml.ScalarNode:
        # Only between double quotes is a break other than a newline still the same one when it is read.
        return self.represent_scalar(_YAML + "str", text, style='"' if _BREAK.search(text) else None)


_Dumper.add_representer(str, _Dumper.text)


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Quote text with a line break of Unicode's in escapes: as it stands it would be read back as a space."""
    style = '"' if _BREAKS & set(text) else None
    return dumper.represent_scalar(_YAML + "str", text, style=style)


_Dumper.add_representer(str, _text)


class _Refused(Exception):  # noqa: N818 - it never leaves this module
    def __init__(self, why: str, at: yaml.Event | yaml.Node) -> None:
        super().__init__(why)
        self.line = _line(at)


def read_tree(path: Path) -> tuple[Any, dict[Place, int]]:
    """Read the file at ``path``; return its tree and the line of each key path. Raises `UserError`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise UserError(f"{path}: larger than {MAX_BYTES // 1024} KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}, line {line}: not UTF-8 text") from None
    return parse_tree(text, name=str(path))


def dump_tree(tree: Any) -> str:
    """Write ``tree`` so that `parse_tree` reads it back."""
    return yaml.dump(tree, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100)


def parse_tree(text: str, *, name: str) -> tuple[Any, dict[Place, int]]:
    """Parse ``text``; ``name`` is what a refusal calls it. Raises `UserError`."""
    lines: dict[Place, int] = {}
    try:
        node = yaml.compose(text, Loader=_Loader)
        return (None if node is None else _value(node, (), lines)), lines
    except _Refused as refused:
        raise UserError(f"{name}, line {refused.line}: {refused}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark else ""
        hint = "a value that holds ': ' needs quotes" if "mapping values" in str(error.problem) else ""
        why = ", ".join(part for part in (error.context, error.problem) if part)
        raise UserError(f"{name}{where}: not readable as YAML: {why}", hint=hint) from None
    except yaml.YAMLError as error:
        raise UserError(f"{name}: not readable as YAML: {str(error).splitlines()[0]}") from None


def _line(at: yaml.Event | yaml.Node) -> int:
    return at.start_mark.line + 1 if at.start_mark else 0


def _value(node: yaml.Node, place: Place, lines: dict[Place, int]) -> Any:
    lines.setdefault(place, _line(node))
    if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
        raise _Refused(
            "half a character (\\uD800 to \\uDFFF): write all of it, or \\U and eight digits", node
        )
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, place, lines)
    if isinstance(node, yaml.SequenceNode):
        return [_value(child, (*place, index), lines) for index, child in enumerate(node.value)]
    return _scalar(node)


def _mapping(node: yaml.MappingNode, place: Place, lines: dict[Place, int]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for key, child in node.value:
        if key.tag != _YAML + "str":
            raise _Refused("a key must be text; put it in quotes", key)
        if key.value in tree:
            path = ".".join(str(part) for part in (*place, key.value))
            raise _Refused(f"{path}: given twice", key)
        lines[*place, key.value] = _line(key)
        tree[key.value] = _value(child, (*place, key.value), lines)
    return tree


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text: str = node.value
    match node.tag.removeprefix(_YAML):
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text.replace("_", ""))
        case "float":
            if not math.isfinite(number := float(text)):
                raise _Refused("a number out of range", node)
            return number
    return text
