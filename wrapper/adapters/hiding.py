"""Keys that a client was given, taken out of what it says: providers repeat one that they refuse. Pure.

What a client says goes into transcripts and to all seats (§14.2). A client that wants to tell its key can do
so in other words; this is for the many that do not want to.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wrapper.adapters.presets import Preset

LEAST_CHARS = 8
"""Of a key that is worth hiding: a shorter one could be any word."""

_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD")


class Keys:
    """The keys in a client's environment, by the names of their variables."""

    def __init__(self, preset: Preset, passed: Iterable[str], environment: Mapping[str, str]) -> None:
        """Keys are what ``preset`` calls a login, and of ``passed`` what is called a key."""
        logins = preset.login.variables if preset.login is not None else ()
        names = {*logins, *(name for name in passed if _SECRET.search(name))}
        known = {name: environment.get(name, "") for name in names}
        # The longest first: one may begin with another.
        ordered = sorted(known.items(), key=lambda one: len(one[1]), reverse=True)
        self._shown = [(key, f"({name})") for name, key in ordered if len(key) >= LEAST_CHARS]

    def hide(self, text: str) -> str:
        """``text``, with the names of the variables in the places of their keys."""
        for key, name in self._shown:
            text = text.replace(key, name)
        return text

    def hide_bytes(self, output: bytes) -> bytes:
        """The same for what a client printed, before anything of it is cut."""
        for key, name in self._shown:
            output = output.replace(key.encode("utf-8", "surrogateescape"), name.encode())
        return output
