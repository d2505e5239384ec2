"""Words with gaps: ``{name}`` is replaced, ``{{`` and ``}}`` stand for braces, other braces are refused.

``{name:.8}`` stands for the first eight characters of it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PIECE = re.compile(
    r"(?P<text>[^{}]+)|(?P<open>\{\{)|(?P<close>\}\})"
    r"|\{(?P<name>[a-z][a-z0-9_]*)(:\.(?P<length>[1-9]\d{0,3}))?\}|(?P<bad>[{}])"
)


def names(template: str) -> frozenset[str]:
    """The names of the gaps. Raises `ValueError` for a brace that belongs to none."""
    return frozenset(name for name, _, _ in _pieces(template) if name)


def check(where: str, template: str, known: frozenset[str]) -> None:
    """Raise `ValueError` unless every gap of ``template``, which stands at ``where``, is ``known``."""
    try:
        unknown = names(template) - known
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if unknown:
        offered = ", ".join(sorted(known))
        raise ValueError(f"{where}: nothing is called {{{min(unknown)}}} here; there is {offered}")


def fill(template: str, values: Mapping[str, str]) -> str:
    """``template`` with every gap filled. Raises `KeyError` for a gap without a value."""
    return _filled(template, values, str)


def fill_quoted(template: str, values: Mapping[str, str]) -> str:
    """As `fill`, with each value as a JSON string, which is one in YAML and TOML too.

    A value can then never become more of a file than the value that it is.
    """
    return _filled(template, values, json.dumps)


def _filled(template: str, values: Mapping[str, str], form: Callable[[str], str]) -> str:
    return "".join(form(values[name][:length]) if name else text for name, length, text in _pieces(template))


def _pieces(template: str) -> Iterator[tuple[str, int | None, str]]:
    """The name of a gap and how much of its value is wanted (None: all), or literal text."""
    for piece in _PIECE.finditer(template):
        if piece["bad"]:
            raise ValueError(f"a single {piece['bad']} at character {piece.start() + 1}; write it twice")
        literal = "{" if piece["open"] else "}" if piece["close"] else piece["text"] or ""
        yield piece["name"] or "", int(piece["length"]) if piece["length"] else None, literal
