"""The real clients, pinned in `images/`, installed by `make .venv/.clients`, in seats of ours before a stub.

Each test that asks for a client that is not installed is skipped; ``CONSILIUM_REQUIRE_CLIENTS=1`` makes
that a failure. Keys are the stub's, homes are private, and nothing but loopback is spoken to.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from leftovers import VARIABLE, Leftovers

from consilium.messages import Fault, PromptSent
from council.conformance.provider.script import KEY
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from council.conformance.provider.stub import Stub

INSTALLED = Path(__file__).parents[2] / ".venv" / "clients"
SYSTEM = "You are a sceptic called Zeno. You answer in plain prose."
BOUNDS = Bounds(overall=120)


@dataclass(frozen=True, slots=True)
class Client:
    """A client as the tests configure it. ``{url}`` in a value is where the stub is."""

    preset: str
    installed_as: str
    env: dict[str, str]
    passed: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)
    reports_usd: bool = True
    cached_apart: bool = True
    """Whether what is read from a cache comes on top of the input that the API tells."""
    shell_tool: tuple[str, str] = ("Bash", "command")
    """The tool that runs a command, and what it calls the command."""
    refusal: str = "touch {made}"
    """What it says of a command that it may not run; empty if it says nothing."""
    ignores: str | None = ".claude"
    """What of a person's home it ignores, restricted, even in the folder of its state; None for nothing."""
    takes_its_folder: bool = False
    """Whether it takes what stands in the folder where it works, restricted or not: that one is empty."""
    tries_again: bool = True
    """Whether it asks a provider again that was overloaded."""
    nowhere: PromptSent = PromptSent.NO
    """What it tells of the prompt if the provider cannot be reached."""
    person: dict[str, str] = field(default_factory=dict)
    """Files in a person's home without which the client does not answer."""
    faults: dict[str, tuple[Fault, PromptSent, str]] = field(default_factory=dict)
    """What becomes of each act of the stub: fault, whether the prompt was sent, words of the sentence."""
    no_key: str = ""
    limit_bytes: int = 9_000_000

    def environment(self, stub: Stub, leftovers: Leftovers, home: Path) -> dict[str, str]:
        """The environment of a wrapper that drives this client."""
        programs = INSTALLED / self.installed_as / "node_modules" / ".bin"
        why = None
        if shutil.which("node") is None:
            why = "node is not installed"
        elif not (programs / load_preset(self.preset).executable).exists():
            why = f"{self.installed_as} is not installed: make .venv/.clients"
        if why is not None:
            if os.environ.get("CONSILIUM_REQUIRE_CLIENTS") == "1":
                pytest.fail(why)
            pytest.skip(why)
        for name, content in self.person.items():
            if not (home / name).exists():
                (home / name).parent.mkdir(parents=True, exist_ok=True)
                (home / name).write_text(content)
        home.mkdir(exist_ok=True)
        own = {name: value.format(url=stub.url) for name, value in self.env.items()}
        return {**leftovers.env, "PATH": f"{programs}:/usr/bin:/bin", "HOME": str(home), **own}


REFUSED = (Fault.CLIENT_ERROR, PromptSent.YES)

ANTHROPIC_FAULTS = {
    "400": (*REFUSED, "API Error: 400 the stub was told to answer 400"),
    "401": (*REFUSED, "Failed to authenticate. API Error: 401 the stub was told"),
    "403": (*REFUSED, "Failed to authenticate. API Error: 403 the stub was told"),
    "404": (*REFUSED, "There's an issue with the selected model"),
    "429": (Fault.QUOTA, PromptSent.YES, "Request rejected (429)"),
    "500": (*REFUSED, "API Error: 500 the stub was told to answer 500"),
    "529": (*REFUSED, "529"),
    "quota": (Fault.QUOTA, PromptSent.YES, "nothing is left of what was paid for"),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "Connection dropped"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "gave an empty answer"),
}

OPENAI_FAULTS = {
    "400": (*REFUSED, "the stub was told to answer 400"),
    "401": (*REFUSED, "unexpected status 401 Unauthorized: the stub was told"),
    "403": (*REFUSED, "unexpected status 403 Forbidden: the stub was told"),
    "404": (*REFUSED, "unexpected status 404 Not Found: the stub was told"),
    "429": (Fault.QUOTA, PromptSent.YES, "429 Too Many Requests"),
    "500": (*REFUSED, "experiencing high demand"),
    "529": (*REFUSED, "unexpected status 529"),
    "quota": (Fault.QUOTA, PromptSent.YES, "Quota exceeded. Check your plan and billing details."),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "stream disconnected before completion"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "gave an empty answer"),
}

GEMINI_FAULTS = {
    "400": (*REFUSED, "the stub was told to answer 400"),
    "401": (*REFUSED, '"code":401,"message":"the stub was told'),
    "403": (*REFUSED, '"code":403,"message":"the stub was told'),
    "404": (*REFUSED, "API Error: the stub was told to answer 404"),
    "429": (Fault.QUOTA, PromptSent.YES, "API Error: the stub was told to answer 429: too many requests"),
    "500": (*REFUSED, '"code":500,"message":"the stub was told'),
    "529": (*REFUSED, '"code":529,"message":"the stub was told'),
    "quota": (Fault.QUOTA, PromptSent.YES, "You have exhausted your daily quota on this model."),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "Model stream ended without a finish reason."),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "The model returned an empty response"),
}

QWEN_PERSON = json.dumps(
    {
        "security": {"auth": {"selectedType": "openai"}},
        "memory": {
            "enableManagedAutoMemory": False,
            "enableManagedAutoDream": False,
            "enableAutoSkill": False,
        },
    }
)
"""Without the second line, each turn asks the model once more, for what is to be remembered."""

QWEN_FAULTS = {
    "400": (*REFUSED, "API Error: 400 the stub was told to answer 400"),
    "401": (*REFUSED, "API Error: 401 the stub was told"),
    "403": (*REFUSED, "API Error: 403 the stub was told"),
    "404": (*REFUSED, "API Error: 404 the stub was told"),
    "429": (Fault.QUOTA, PromptSent.YES, "API Error: 429 Too Many Requests"),
    "500": (*REFUSED, "API Error: 500 Internal Server Error"),
    "529": (*REFUSED, "API Error: 529"),
    "quota": (Fault.QUOTA, PromptSent.YES, "API Error: 429 Too Many Requests"),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "Model stream ended without a finish reason."),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "Model stream ended with empty response text."),
}

CLIENTS = {
    client.preset: client
    for client in (
        Client(
            "claude",
            "claude",
            env={"ANTHROPIC_BASE_URL": "{url}", "ANTHROPIC_API_KEY": KEY},
            passed=("ANTHROPIC_API_KEY",),
            settings={"model": "claude-opus-4-8"},
            faults=ANTHROPIC_FAULTS,
            no_key="Not logged in",
        ),
        Client(
            "glm-code",
            "claude",
            env={"GLM_BASE_URL": "{url}/api/anthropic", "ANTHROPIC_AUTH_TOKEN": KEY},
            passed=("ANTHROPIC_AUTH_TOKEN",),
            settings={"api_base": "{url}/api/anthropic"},
            reports_usd=False,
            faults=ANTHROPIC_FAULTS,
            no_key="Not logged in",
        ),
        Client(
            "codex",
            "codex",
            env={"CODEX_BASE_URL": "{url}/v1", "CODEX_API_KEY": KEY},
            passed=("CODEX_API_KEY",),
            settings={"api_base": "{url}/v1"},
            reports_usd=False,
            cached_apart=False,
            shell_tool=("exec_command", "cmd"),
            refusal="",
            ignores=None,
            faults=OPENAI_FAULTS,
            no_key="Missing environment variable: `CODEX_API_KEY`",
            limit_bytes=1_100_000,
        ),
        Client(
            "gemini",
            "gemini",
            env={"GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_API_KEY": KEY},
            passed=("GEMINI_API_KEY",),
            settings={"model": "gemini-2.5-flash"},
            reports_usd=False,
            cached_apart=False,
            shell_tool=("run_shell_command", "command"),
            refusal='Tool \\"run_shell_command\\" not found',
            ignores="",
            takes_its_folder=True,
            tries_again=False,
            nowhere=PromptSent.MAYBE,
            person={".gemini/settings.json": '{"security":{"auth":{"selectedType":"gemini-api-key"}}}'},
            faults=GEMINI_FAULTS,
            no_key="you must specify the GEMINI_API_KEY environment variable",
        ),
        Client(
            "qwen-code",
            "qwen-code",
            env={"OPENAI_BASE_URL": "{url}/v1", "OPENAI_API_KEY": KEY},
            passed=("OPENAI_API_KEY",),
            settings={"api_base": "{url}/v1"},
            reports_usd=False,
            cached_apart=False,
            shell_tool=("run_shell_command", "command"),
            ignores=".qwen",
            takes_its_folder=True,
            nowhere=PromptSent.MAYBE,
            person={".qwen/settings.json": QWEN_PERSON},
            faults=QWEN_FAULTS,
            no_key="Missing API key for OpenAI-compatible auth",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Seats:
    """Makes seats of one client; each call is another life of the wrapper."""

    client: Client
    stub: Stub
    folder: Path
    leftovers: Leftovers

    def plan(self) -> tuple[str, dict[str, str], str, dict[str, str], tuple[str, ...]]:
        """What a seat is made of: preset, settings, folder, environment, names of what is passed on."""
        settings = {key: value.format(url=self.stub.url) for key, value in self.client.settings.items()}
        ours = self.client.environment(self.stub, self.leftovers, self.folder / "person")
        folder = str(self.folder / "seat")
        return self.client.preset, settings, folder, ours, (VARIABLE, *self.client.passed)

    def make(self, name: str = "seat", **choices: Any) -> NativeAdapter:
        """A seat whose state is in the folder ``name``."""
        preset, settings, _, ours, passed = self.plan()
        settings |= choices.pop("settings", {})
        usual: dict[str, Any] = {
            "environment": ours | choices.pop("env", {}),
            "bounds": BOUNDS,
            "passed": passed,
        }
        return NativeAdapter(load_preset(preset), settings, self.folder / name, **{**usual, **choices})
