"""The real clients, pinned in `images/`, installed by `make .venv/.clients`, on a bench of ours.

Each test that asks for a client that is not installed is skipped; ``CONSILIUM_REQUIRE_CLIENTS=1`` makes
that a failure. How a client is brought before the provider stands in its preset.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from council.conformance.bench import Bench
from wrapper.adapters.presets import load_preset

INSTALLED = Path(__file__).parents[2] / ".venv" / "clients"


@dataclass(frozen=True, slots=True)
class Client:
    """What is expected of a client beyond what is expected of all."""

    preset: str
    installed_as: str
    words: Mapping[str, str]
    """For each act of the provider, what of the client's own words the fault holds."""
    no_key: str
    """The same for a key that is missing."""
    programs: str = "node_modules/.bin"
    not_applicable: frozenset[str] = frozenset()
    """The checks that do not apply."""
    tries_again: bool = True
    """Whether it asks a provider again that was overloaded."""
    leaves_out: str = ""
    """Prompts that reach the model, and are not in the chat later."""
    splits_sequences: bool = False
    """Whether it takes an escape sequence apart, so that the rest of it is text."""

    def bench(self, folder: Path) -> Bench:
        """A bench of this client."""
        preset = load_preset(self.preset)
        programs = INSTALLED / self.installed_as / self.programs
        why = None
        if shutil.which("node") is None:
            why = "node is not installed"
        elif not (programs / preset.executable).exists():
            why = f"{self.installed_as} is not installed: make .venv/.clients"
        if why is not None:
            if os.environ.get("CONSILIUM_REQUIRE_CLIENTS") == "1":
                pytest.fail(why)
            pytest.skip(why)
        return Bench(preset, folder, {"PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8"})


CLAUDE_WORDS = {
    "400": "API Error: 400 the stub was told to answer 400",
    "401": "Failed to authenticate. API Error: 401 the stub was told",
    "403": "Failed to authenticate. API Error: 403 the stub was told",
    "404": "There's an issue with the selected model",
    "429": "Request rejected (429)",
    "500": "API Error: 500 the stub was told to answer 500",
    "529": "529",
    "quota": "nothing is left of what was paid for",
    "cut": "Connection dropped",
    "empty": "gave an empty answer",
}

CODEX_WORDS = {
    "400": "the stub was told to answer 400",
    "401": "unexpected status 401 Unauthorized: the stub was told",
    "403": "unexpected status 403 Forbidden: the stub was told",
    "404": "unexpected status 404 Not Found: the stub was told",
    "429": "429 Too Many Requests",
    "500": "experiencing high demand",
    "529": "unexpected status 529",
    "quota": "Quota exceeded. Check your plan and billing details.",
    "cut": "stream disconnected before completion",
    "empty": "gave an empty answer",
}

GEMINI_WORDS = {
    "400": "the stub was told to answer 400",
    "401": '"code":401,"message":"the stub was told',
    "403": '"code":403,"message":"the stub was told',
    "404": "API Error: the stub was told to answer 404",
    "429": "API Error: the stub was told to answer 429: too many requests",
    "500": '"code":500,"message":"the stub was told',
    "529": '"code":529,"message":"the stub was told',
    "quota": "You have exhausted your daily quota on this model.",
    "cut": "Model stream ended without a finish reason.",
    "empty": "The model returned an empty response",
}

OPENCODE_WORDS = {
    "400": "the provider answered 400: the stub was told",
    "401": "the provider answered 401: the stub was told",
    "403": "the provider answered 403: the stub was told",
    "404": "the provider answered 404: the stub was told",
    "429": "too many requests",
    "500": "gave up after 3 of its tries: the stub was told to answer 500",
    "529": "gave up after 3 of its tries: the stub was told to answer 529",
    "quota": "nothing is left of what was paid for",
    "cut": "the answer broke off",
    "empty": "gave an empty answer",
}

KIMI_WORDS = {
    "400": "400 the stub was told to answer 400",
    "401": "Authentication required: 401 the stub was told",
    "403": "Authentication required: 403 the stub was told",
    "404": "404 the stub was told to answer 404",
    "429": "429 the stub was told to answer 429",
    "500": "500 the stub was told to answer 500",
    "529": "529 the stub was told to answer 529",
    "quota": "nothing is left of what was paid for",
    "cut": "its output breaks off",
    "empty": "The API returned an empty response",
}

QWEN_WORDS = {
    "400": "API Error: 400 the stub was told to answer 400",
    "401": "API Error: 401 the stub was told",
    "403": "API Error: 403 the stub was told",
    "404": "API Error: 404 the stub was told",
    "429": "API Error: 429 Too Many Requests",
    "500": "API Error: 500 Internal Server Error",
    "529": "API Error: 529",
    "quota": "API Error: 429 Too Many Requests",
    "cut": "Model stream ended without a finish reason.",
    "empty": "Model stream ended with empty response text.",
}

CLIENTS = {
    client.preset: client
    for client in (
        Client("claude", "claude", CLAUDE_WORDS, "Not logged in"),
        Client("codex", "codex", CODEX_WORDS, "Missing environment variable: `CODEX_API_KEY`"),
        Client(
            "gemini",
            "gemini",
            GEMINI_WORDS,
            "you must specify the GEMINI_API_KEY environment variable",
            tries_again=False,
            leaves_out="/help, /cost, /clear, /nosuchcommand x",
            splits_sequences=True,
        ),
        Client("qwen-code", "qwen-code", QWEN_WORDS, "Missing API key for OpenAI-compatible auth"),
        Client(
            "opencode",
            "opencode",
            OPENCODE_WORDS,
            "there is no key for http://127.0.0.1",
            programs="node_modules/opencode-linux-x64-baseline/bin",
            not_applicable=frozenset({"overlong-prompt-is-refused"}),
        ),
        Client("kimi", "kimi", KIMI_WORDS, "Authentication required"),
    )
}

ALIKE = {
    name: replace(CLIENTS[like], preset=name)
    for name, like in (("deepseek.coder", "opencode"), ("glm-code", "claude"))
}
"""Presets that drive the program of another one in the same way: only what differs is tried."""


def each(clients: Mapping[str, Client]) -> list[Any]:
    """The names of ``clients`` as parameters; those of one program are tried one after the other."""
    return [
        pytest.param(name, marks=pytest.mark.xdist_group(client.installed_as))
        for name, client in sorted(clients.items())
    ]
