"""The Gemini API, as far as Gemini CLI uses it: the whole history in every request, the model in its path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from council.conformance.provider.script import KEY, Heard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from council.conformance.provider.script import Figures, Reply

PATH = re.compile(r"/v1beta/models/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)$")
ASCII = True
NAMED_EVENTS = False
LAST = None

CONTEXT = "<session_context>"
"""How a text begins that the Gemini CLI adds on behalf of nobody."""

THOUGHTS = 3
"""Tokens of the output that this API counts apart, as thought and not as said."""

_ROLES = {"user": "user", "model": "assistant"}

_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    529: "UNAVAILABLE",
}

Json = dict[str, Any]


def key_is_known(headers: Mapping[str, str]) -> bool:
    """Whether the request came with the stub's key."""
    return headers.get("x-goog-api-key") == KEY


def hear(body: Json, path: str) -> Heard:
    """What a request says. The model and whether the answer streams stand in the ``path``."""
    named = PATH.search(path)
    assert named is not None, "a request is given to the API of its path"
    said: list[tuple[str, str]] = []
    results: list[str] = []
    for content in body["contents"]:
        answers = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        texts = [part["text"] for part in content["parts"] if "text" in part]
        texts = [text for text in texts if not text.startswith(CONTEXT)]
        if answers:
            results += [_result(answer) for answer in answers]
        elif texts:
            said.append((_ROLES[content["role"]], "".join(texts)))
            results.clear()
    return Heard(
        model=named["model"],
        system=_text(body.get("systemInstruction")),
        said=tuple(said),
        tools=tuple(
            function["name"]
            for tool in body.get("tools", [])
            for function in tool.get("functionDeclarations", [])
        ),
        tool_results=tuple(results),
        streamed=named["method"] == "streamGenerateContent",
    )


def whole(reply: Reply, model: str) -> Json:
    """The answer in one piece."""
    parts: list[Json] = [{"text": reply.text}] if reply.text else []
    return _document([*parts, *_calls(reply)], reply.figures, model)


def events(reply: Reply, model: str) -> Iterator[Json]:
    """The answer as it streams, halves of the text apart. The last piece says so, and what it all cost."""
    half = len(reply.text) // 2
    for piece in (reply.text[:half], reply.text[half:]):
        if piece:
            yield _document([{"text": piece}], None, model)
    yield _document(_calls(reply), reply.figures, model)


def error(status: int, words: str, *, quota: bool) -> Json:
    """An error's body. A quota that is used up is told in a detail, beside the words."""
    detail = {
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}],
    }
    told = {"code": status, "message": words, "status": _KINDS[status]}
    return {"error": {**told, "details": [detail]} if quota else told}


def _text(content: Json | None) -> str:
    return "\n".join(part["text"] for part in (content or {}).get("parts", []) if "text" in part)


def _result(answer: Json) -> str:
    """What a tool answered: its output, or its error."""
    response = answer["response"]
    return str(response.get("output") or response.get("error") or response)


def _calls(reply: Reply) -> list[Json]:
    return (
        [] if reply.tool is None else [{"functionCall": {"name": reply.tool.name, "args": reply.tool.input}}]
    )


def _document(parts: list[Json], figures: Figures | None, model: str) -> Json:
    candidate: Json = {"index": 0, "content": {"role": "model", "parts": parts}}
    if figures is None:
        return {"candidates": [candidate], "modelVersion": model}
    incoming = figures.fresh + figures.cache_read
    usage = {
        "promptTokenCount": incoming,
        "cachedContentTokenCount": figures.cache_read,
        "candidatesTokenCount": figures.output - THOUGHTS,
        "thoughtsTokenCount": THOUGHTS,
        "totalTokenCount": incoming + figures.output,
    }
    return {
        "candidates": [{**candidate, "finishReason": "STOP"}],
        "usageMetadata": usage,
        "modelVersion": model,
    }
