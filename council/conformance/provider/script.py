"""What a stub provider makes of a request, whatever the API: an answer that tells what was sent, or an act.

The last thing that the user said may order an act as ``<<name>>`` or ``<<name argument>>``. Whoever sends
the prompt again, as clients do after an error, gets the same act again; nothing has to be set up or taken
back, and an act can be ordered through a whole debate.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from wrapper.prompts import END_RULE, END_TOKEN

ACTS = {
    "400": "the request is refused",
    "401": "the key is not known",
    "403": "the key may not do this",
    "404": "the model is not known",
    "429": "too many requests; the argument is `retry-after` in seconds (default 1)",
    "500": "the provider failed",
    "529": "the provider is overloaded",
    "quota": "nothing is left of what was paid for",
    "hang": "nothing is said at all",
    "hang_midway": "half an answer, then silence",
    "cut": "half an answer, then the connection is gone",
    "empty": "an answer without text",
    "tool": "a tool is called: its name, then its input as JSON",
    "huge": "an answer of as many bytes as the argument says",
    "controls": "an answer full of control characters",
    "say": "the argument is the answer",
    "forget": "an answer without the token that ends one, though the model was asked for it",
}

STATUSES = {"400": 400, "401": 401, "403": 403, "404": 404, "429": 429, "500": 500, "529": 529, "quota": 429}

KEY = "sk-stub-0123456789"
"""The only key that the stubs know. It opens nothing."""

CONTROLS = "a\x1b[31mred\x1b[0m \x1b]0;title\x07b\x08\x00\x9bm \u202edesrever\u2028 \x85end"

_ORDER = re.compile(r"<<(\w+)(?: ([^>]*))?>>")


@dataclass(frozen=True, slots=True)
class Heard:
    """A request, told in the same way for every API: who said what, with which tools at hand."""

    model: str
    system: str
    said: tuple[tuple[str, str], ...]
    """Pairs of role (``user``, ``assistant``) and text, oldest first; what the client adds is left out."""
    tools: tuple[str, ...]
    tool_results: tuple[str, ...]
    """What the tools answered that were called in this turn."""
    streamed: bool

    @property
    def prompts(self) -> tuple[str, ...]:
        """What the user said, oldest first."""
        return tuple(text for role, text in self.said if role == "user")


@dataclass(frozen=True, slots=True)
class Figures:
    """What an answer cost. ``fresh`` input tokens were neither read from a cache nor written to one."""

    fresh: int
    cache_read: int
    cache_written: int
    output: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool that the model wants to be called."""

    name: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Act:
    """What the provider shall do: answer, or one of `ACTS`."""

    name: str = "answer"
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, before it is put into the words of an API."""

    text: str
    figures: Figures
    tool: ToolCall | None = None


def ordered(heard: Heard) -> Act:
    """What the last prompt orders. A tool is called once a turn."""
    prompts = heard.prompts
    found = _ORDER.search(prompts[-1]) if prompts else None
    if found is None or found[1] not in ACTS or (found[1] == "tool" and heard.tool_results):
        return Act()
    return Act(found[1], found[2] or "")


def reply_to(heard: Heard, act: Act) -> Reply:
    """The answer to ``heard``. Its figures tell the number of user messages: 100 and one for each.

    It ends with the end-of-response token if the model is told to end its answers so (§12).
    """
    reply = _reply(heard, act)
    asked = any(END_RULE in text for text in (heard.system, *heard.prompts[:1]))
    if not asked or reply.tool is not None or act.name == "forget":
        return reply
    return replace(reply, text=f"{reply.text}\n\n{END_TOKEN}".strip())


def _reply(heard: Heard, act: Act) -> Reply:
    prompts = heard.prompts
    figures = Figures(fresh=100 + len(prompts), cache_read=11, cache_written=7, output=13)
    match act.name:
        case "empty":
            return Reply("", figures)
        case "huge":
            return Reply("x" * int(act.argument), figures)
        case "controls":
            return Reply(CONTROLS, figures)
        case "say":
            return Reply(act.argument, figures)
        case "tool":
            name, _, arguments = act.argument.partition(" ")
            return Reply("", figures, ToolCall(name, json.loads(arguments)))
        case _:
            return Reply(seen(len(prompts), prompts[-1] if prompts else ""), figures)


def seen(number: int, last: str) -> str:
    """The ordinary answer to ``number`` user messages of which this is the ``last``."""
    return f"I have seen {number} user messages; last: {last.strip()[:200]}"
