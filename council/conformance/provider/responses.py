"""The OpenAI Responses API, as far as Codex uses it: always streamed, the whole history in every request."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from council.conformance.provider.script import KEY, Heard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from council.conformance.provider.script import Figures, Reply

PATH = re.compile(r"/v1/responses$")
ASCII = False
NAMED_EVENTS = True
LAST = None

CONTEXT = ("<environment_context>", "# AGENTS.md instructions")
"""How user messages begin that Codex adds on behalf of nobody."""

Json = dict[str, Any]


def key_is_known(headers: Mapping[str, str]) -> bool:
    """Whether the request came with the stub's key."""
    return headers.get("authorization") == f"Bearer {KEY}"


def hear(body: Json, path: str) -> Heard:  # noqa: ARG001 - other APIs name the model there
    """What a request says. Tools may stand beside the input or be an item of it, alone or in groups."""
    said: list[tuple[str, str]] = []
    system = [body["instructions"]] if body.get("instructions") else []
    results: list[str] = []
    tools = list(body.get("tools") or [])
    for item in body["input"]:
        match item.get("type", "message"):
            case "message" if item["role"] in ("user", "assistant"):
                text = _text(item["content"])
                if not text.startswith(CONTEXT):
                    said.append((item["role"], text))
                    results.clear()
            case "message":
                system.append(_text(item["content"]))
            case "function_call_output" | "custom_tool_call_output":
                results.append(_text(item["output"]))
            case "additional_tools":
                tools += item["tools"]
            case _:
                pass
    return Heard(
        model=body["model"],
        system="\n".join(system),
        said=tuple(said),
        tools=tuple(name for tool in tools for name in _names(tool)),
        tool_results=tuple(results),
        streamed=body.get("stream", False),
    )


def whole(reply: Reply, model: str) -> Json:
    """The answer in one piece."""
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": model,
        "output": [item for _, item in _items(reply)],
        "usage": _usage(reply.figures),
    }


def events(reply: Reply, model: str) -> Iterator[Json]:
    """The answer as it streams, halves of the text apart."""
    yield {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
    for place, item in _items(reply):
        if item["type"] != "message":
            yield {"type": "response.output_item.done", "output_index": place, "item": item}
            continue
        begun = {**item, "status": "in_progress", "content": []}
        yield {"type": "response.output_item.added", "output_index": place, "item": begun}
        half = len(reply.text) // 2
        for piece in (reply.text[:half], reply.text[half:]):
            yield {
                "type": "response.output_text.delta",
                "item_id": item["id"],
                "output_index": place,
                "content_index": 0,
                "delta": piece,
            }
        yield {"type": "response.output_item.done", "output_index": place, "item": item}
    yield {"type": "response.completed", "response": whole(reply, model)}


def error(status: int, words: str, *, quota: bool) -> Json:
    """An error's body."""
    code = "insufficient_quota" if quota else f"stub_{status}"
    return {"error": {"message": words, "type": code, "code": code}}


def _items(reply: Reply) -> Iterator[tuple[int, Json]]:
    if reply.text:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        yield (
            0,
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": content,
            },
        )
    if reply.tool is not None:
        arguments = json.dumps(reply.tool.input)
        called = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": reply.tool.name}
        yield int(bool(reply.text)), {**called, "arguments": arguments, "status": "completed"}


def _names(tool: Json) -> list[str]:
    own = [tool.get("name") or tool["type"]]
    return [name for inner in tool["tools"] for name in _names(inner)] if "tools" in tool else own


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if "text" in part)
    return content or ""


def _usage(figures: Figures) -> Json:
    incoming = figures.fresh + figures.cache_read
    return {
        "input_tokens": incoming,
        "input_tokens_details": {"cached_tokens": figures.cache_read},
        "output_tokens": figures.output,
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": incoming + figures.output,
    }
