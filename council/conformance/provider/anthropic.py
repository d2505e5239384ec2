"""The Anthropic Messages API, as far as Claude Code uses it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from council.conformance.provider.script import KEY, Heard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from council.conformance.provider.script import Figures, Reply

PATH = re.compile(r"/v1/messages$")
ASCII = False
NAMED_EVENTS = True
LAST = None

REMINDER = "<system-reminder>"
"""How a text begins that Claude Code adds on behalf of nobody."""

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}

Json = dict[str, Any]


def key_is_known(headers: Mapping[str, str]) -> bool:
    """Whether the request came with the stub's key, in either of the two ways."""
    return KEY in (headers.get("x-api-key"), headers.get("authorization", "").removeprefix("Bearer "))


def hear(body: Json, path: str) -> Heard:  # noqa: ARG001 - other APIs name the model there
    """What a request says. A message's last block is the user's; the client's reminders are left out."""
    said: list[tuple[str, str]] = []
    results: list[str] = []
    for message in body["messages"]:
        if message["role"] not in ("user", "assistant"):
            continue
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        answers = [_text(block.get("content")) for block in blocks if block["type"] == "tool_result"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        texts = [text for text in texts if not text.startswith(REMINDER)]
        if answers:
            results += answers
        elif texts:
            said.append((message["role"], texts[-1]))
            results.clear()
    return Heard(
        model=body["model"],
        system=_text(body.get("system")),
        said=tuple(said),
        tools=tuple(tool["name"] for tool in body.get("tools", [])),
        tool_results=tuple(results),
        streamed=body.get("stream", False),
    )


def whole(reply: Reply, model: str) -> Json:
    """The answer in one piece."""
    content: list[Json] = [{"type": "text", "text": reply.text}] if reply.text else []
    if reply.tool is not None:
        content.append(
            {"type": "tool_use", "id": "toolu_1", "name": reply.tool.name, "input": reply.tool.input}
        )
    return {
        **_envelope(model),
        "content": content,
        "stop_reason": "tool_use" if reply.tool else "end_turn",
        "usage": {**_input(reply.figures), "output_tokens": reply.figures.output},
    }


def events(reply: Reply, model: str) -> Iterator[Json]:
    """The answer as it streams, halves of the text apart."""
    start = {**_envelope(model), "content": [], "stop_reason": None}
    yield {
        "type": "message_start",
        "message": {**start, "usage": {**_input(reply.figures), "output_tokens": 1}},
    }
    place = 0
    if reply.text:
        yield _block(place, {"type": "text", "text": ""})
        half = len(reply.text) // 2
        for piece in (reply.text[:half], reply.text[half:]):
            yield _delta(place, {"type": "text_delta", "text": piece})
        yield {"type": "content_block_stop", "index": place}
        place += 1
    if reply.tool is not None:
        yield _block(place, {"type": "tool_use", "id": "toolu_1", "name": reply.tool.name, "input": {}})
        arguments = json.dumps(reply.tool.input)
        yield _delta(place, {"type": "input_json_delta", "partial_json": arguments})
        yield {"type": "content_block_stop", "index": place}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": reply.figures.output},
    }
    yield {"type": "message_stop"}


def error(status: int, words: str, *, quota: bool) -> Json:  # noqa: ARG001 - words alone tell it
    """An error's body. That a quota is used up this API tells in words alone."""
    return {"type": "error", "error": {"type": _KINDS[status], "message": words}}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(block["text"] for block in content if block.get("type") == "text")
    return content or ""


def _envelope(model: str) -> Json:
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}


def _input(figures: Figures) -> Json:
    return {
        "input_tokens": figures.fresh,
        "cache_creation_input_tokens": figures.cache_written,
        "cache_read_input_tokens": figures.cache_read,
    }


def _block(place: int, block: Json) -> Json:
    return {"type": "content_block_start", "index": place, "content_block": block}


def _delta(place: int, delta: Json) -> Json:
    return {"type": "content_block_delta", "index": place, "delta": delta}
