"""The OpenAI Chat Completions API, which many providers speak and many clients: the whole history every time.

Each provider has it at a place of its own, so whatever ends in ``/chat/completions`` is it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from council.conformance.provider.script import KEY, Heard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from council.conformance.provider.script import Figures, Reply

PATH = re.compile(r"/chat/completions$")
ASCII = False
NAMED_EVENTS = False
LAST = "[DONE]"

ADDED = {
    "Qwen Code": ("<system-reminder>",),
    "Kimi Code": ("<system-reminder>",),
}
"""How parts of user messages begin that each client adds on behalf of nobody; others add none."""

_ADDED = tuple({beginning for beginnings in ADDED.values() for beginning in beginnings})

_REASONING = 3

Json = dict[str, Any]


def key_is_known(headers: Mapping[str, str]) -> bool:
    """Whether the request came with the stub's key."""
    return headers.get("authorization") == f"Bearer {KEY}"


def hear(body: Json, path: str) -> Heard:  # noqa: ARG001 - other APIs name the model there
    """What a request says. Of a user's parts those count that no client added."""
    said: list[tuple[str, str]] = []
    system: list[str] = []
    results: list[str] = []
    for message in body["messages"]:
        texts = _texts(message.get("content"))
        match message["role"]:
            case "user":
                texts = [text for text in texts if not text.lstrip().startswith(_ADDED)]
                if texts:
                    said.append(("user", "\n".join(texts)))
                    results.clear()
            case "assistant" if texts:
                said.append(("assistant", "\n".join(texts)))
            case "assistant":
                pass  # nothing but a call of a tool
            case "tool":
                results.append("\n".join(texts))
            case "system" | "developer":
                system += texts
            case role:
                raise ValueError(f"nobody is a {role}")
    return Heard(
        model=body["model"],
        system="\n".join(system),
        said=tuple(said),
        tools=tuple(tool["function"]["name"] for tool in body.get("tools") or ()),
        tool_results=tuple(results),
        streamed=body.get("stream", False),
    )


def whole(reply: Reply, model: str) -> Json:
    """The answer in one piece."""
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.tool is not None:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
    return {**_envelope(model, "chat.completion"), "choices": [choice], "usage": _usage(reply.figures)}


def events(reply: Reply, model: str) -> Iterator[Json]:
    """The answer as it streams: halves of the text apart, and the figures by themselves at the end.

    Whether they were asked for does not matter, as with the providers that these clients are used with.
    """
    half = len(reply.text) // 2
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": piece} for piece in (reply.text[:half], reply.text[half:]) if piece]
    if reply.tool is not None:
        deltas.append({"tool_calls": [{"index": 0, **call} for call in _calls(reply)]})
    for delta in deltas:
        yield _chunk(model, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _chunk(model, [{"index": 0, "delta": {}, "finish_reason": _reason(reply)}])
    yield {**_chunk(model, []), "usage": _usage(reply.figures)}


def error(status: int, words: str, *, quota: bool) -> Json:
    """An error's body."""
    code = "insufficient_quota" if quota else f"stub_{status}"
    return {"error": {"message": words, "type": code, "param": None, "code": code}}


def _texts(content: Any) -> list[str]:
    if isinstance(content, list):
        return [part["text"] for part in content if part["type"] == "text"]
    return [content] if content else []


def _envelope(model: str, kind: str) -> Json:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_764_000_000, "model": model}


def _chunk(model: str, choices: list[Json]) -> Json:
    return {**_envelope(model, "chat.completion.chunk"), "choices": choices}


def _calls(reply: Reply) -> list[Json]:
    assert reply.tool is not None
    function = {"name": reply.tool.name, "arguments": json.dumps(reply.tool.input)}
    return [{"id": "call_1", "type": "function", "function": function}]


def _reason(reply: Reply) -> str:
    return "tool_calls" if reply.tool is not None else "stop"


def _usage(figures: Figures) -> Json:
    incoming = figures.fresh + figures.cache_read
    return {
        "prompt_tokens": incoming,
        "completion_tokens": figures.output,
        "total_tokens": incoming + figures.output,
        "prompt_tokens_details": {"cached_tokens": figures.cache_read},
        "completion_tokens_details": {"reasoning_tokens": _REASONING},
    }
