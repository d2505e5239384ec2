"""The stub provider itself: what a client would see of it, by hand."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from certificates import SERVER_AUTH, forge_root, issue_odd
from cryptography import x509

from council.conformance.provider.script import ACTS, CONTROLS, KEY, STATUSES
from council.conformance.provider.stub import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]

PATIENCE = 30


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


class RefusedError(Exception):
    def __init__(self, answer: HTTPResponse, text: str) -> None:
        self.code, self.headers, self.text = answer.status, answer.headers, text


def send(
    url: str,
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    headers: dict[str, str] | None = None,
    timeout: float = PATIENCE,
) -> str:
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=timeout)) as connection:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        text = answer.read().decode()
    if answer.status != 200:
        raise RefusedError(answer, text)
    return text


class Talker(ABC):
    """One API from the client's side: how a question is put, and where the answer stands."""

    def __init__(self, stub: Stub, *, streamed: bool = True, key: str = KEY) -> None:
        self.stub, self.streamed, self.key = stub, streamed, key

    @abstractmethod
    def ask(self, *said: str, timeout: float = PATIENCE) -> str:
        """Put a question, or a whole conversation; return the answer."""

    def post(self, path: str, body: Json, headers: dict[str, str], timeout: float = PATIENCE) -> Any:
        text = send(self.stub.url, "POST", path, json.dumps(body).encode(), headers=headers, timeout=timeout)
        if not self.streamed:
            return json.loads(text)
        told = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
        return [json.loads(line) for line in told if line != "[DONE]"]


class Messages(Talker):
    def ask(self, *said: str, timeout: float = PATIENCE) -> str:
        roles = ("user", "assistant")
        messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(said)]
        body = {"model": "m", "system": "s", "messages": messages, "stream": self.streamed, "tools": []}
        told = self.post("/any/where/v1/messages?beta=true", body, {"x-api-key": self.key}, timeout)
        if self.streamed:
            assert [told[0]["type"], told[-1]["type"]] == ["message_start", "message_stop"]
            return "".join(event["delta"].get("text", "") for event in told if "delta" in event)
        return "".join(block["text"] for block in told["content"])


class Responses(Talker):
    def ask(self, *said: str, timeout: float = PATIENCE) -> str:
        roles = ("user", "assistant")
        items = [{"role": roles[place % 2], "content": text} for place, text in enumerate(said)]
        body = {"model": "m", "input": items, "stream": self.streamed}
        told = self.post("/v1/responses", body, {"authorization": f"Bearer {self.key}"}, timeout)
        if self.streamed:
            assert [told[0]["type"], told[-1]["type"]] == ["response.created", "response.completed"]
            told = told[-1]["response"]
        return "".join(part["text"] for item in told["output"] for part in item["content"])


class Contents(Talker):
    def ask(self, *said: str, timeout: float = PATIENCE) -> str:
        roles = ("user", "model")
        contents = [{"role": roles[place % 2], "parts": [{"text": text}]} for place, text in enumerate(said)]
        method = "streamGenerateContent?alt=sse" if self.streamed else "generateContent"
        path, key = f"/v1beta/models/m:{method}", {"x-goog-api-key": self.key}
        told = self.post(path, {"contents": contents}, key, timeout)
        pieces = told if self.streamed else [told]
        assert pieces[-1]["candidates"][0].get("finishReason") == "STOP"
        assert {piece["modelVersion"] for piece in pieces} == {"m"}
        return "".join(
            part["text"] for piece in pieces for part in piece["candidates"][0]["content"]["parts"]
        )


class Completions(Talker):
    def ask(self, *said: str, timeout: float = PATIENCE) -> str:
        roles = ("user", "assistant")
        messages = [{"role": roles[place % 2], "content": text} for place, text in enumerate(said)]
        told = self.complete([{"role": "system", "content": "s"}, *messages], timeout=timeout)
        if not self.streamed:
            (choice,) = told["choices"]
            return str(choice["message"]["content"] or "")
        *pieces, finish, figures = told
        assert finish["choices"][0]["finish_reason"] == "stop"
        assert figures["choices"] == []
        return "".join(piece["choices"][0]["delta"]["content"] for piece in pieces)

    def complete(self, messages: list[Json], *, timeout: float = PATIENCE, **more: Any) -> Any:
        body = {"model": "m", "messages": messages, "stream": self.streamed, **more}
        headers = {"authorization": f"Bearer {self.key}"}
        return self.post("/any/where/chat/completions", body, headers, timeout)


@pytest.fixture(params=[Messages, Responses, Completions, Contents])
def api(request: pytest.FixtureRequest, stub: Stub) -> Talker:
    made: Talker = request.param(stub)
    return made


@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_tells_what_was_sent(api: Talker, streamed: bool) -> None:
    api.streamed = streamed
    assert api.ask("first") == "I have seen 1 user messages; last: first"
    assert api.ask("first", "an answer", "second") == "I have seen 2 user messages; last: second"
    assert api.stub.turns[-1].said == (("user", "first"), ("assistant", "an answer"), ("user", "second"))
    assert api.stub.turns[-1].streamed is streamed


@pytest.mark.parametrize("act", STATUSES)
def test_an_error_is_given_as_long_as_the_prompt_asks_for_it(api: Talker, act: str) -> None:
    for _ in range(2):
        with pytest.raises(RefusedError) as raised:
            api.ask("first", "an answer", f"please <<{act}>>")
        assert raised.value.code == STATUSES[act]
        assert f"the stub was told to answer {act}" in raised.value.text
    assert api.ask(f"please <<{act}>>", "an answer", "second").endswith("last: second")


def test_too_many_requests_come_with_the_time_to_wait(api: Talker) -> None:
    with pytest.raises(RefusedError) as raised:
        api.ask("<<429 7>>")
    assert raised.value.headers["retry-after"] == "7"


def test_a_used_up_quota_is_told_from_too_many_requests_where_the_api_can(stub: Stub) -> None:
    for act, details in (("quota", 1), ("429", 0)):
        with pytest.raises(RefusedError) as raised:
            Contents(stub).ask(f"<<{act}>>")
        assert len(json.loads(raised.value.text)["error"].get("details", [])) == details
    for talker in (Responses(stub), Completions(stub)):
        with pytest.raises(RefusedError) as raised:
            talker.ask("<<quota>>")
        assert json.loads(raised.value.text)["error"]["code"] == "insufficient_quota"


def test_a_key_that_is_not_the_stubs_is_refused(api: Talker) -> None:
    api.key = "sk-other"
    with pytest.raises(RefusedError) as raised:
        api.ask("hello")
    assert raised.value.code == 401


@pytest.mark.parametrize("act", ["hang", "hang_midway"])
def test_a_hang_lasts_until_the_client_gives_up(api: Talker, act: str) -> None:
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        api.ask(f"<<{act}>>", timeout=1)
    assert time.monotonic() - began >= 1
    assert api.ask("and now") == "I have seen 1 user messages; last: and now"


def test_a_hanging_request_does_not_keep_the_stub_from_ending() -> None:
    with Stub() as stub, pytest.raises(TimeoutError):
        Messages(stub).ask("<<hang>>", timeout=0.5)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_cut_answer_has_no_end(api: Talker, streamed: bool) -> None:
    api.streamed = streamed
    with pytest.raises((AssertionError, HTTPException, ConnectionError)):
        api.ask("<<cut>>")


@pytest.mark.parametrize("streamed", [True, False])
def test_answers_that_are_hard_to_take(api: Talker, streamed: bool) -> None:
    api.streamed = streamed
    assert api.ask("<<empty>>") == ""
    assert api.ask("<<controls>>") == CONTROLS
    assert len(api.ask("<<huge 1000000>>")) == 1_000_000


def test_acts_can_be_ordered_request_by_request(api: Talker) -> None:
    api.stub.will("500", "answer")
    with pytest.raises(RefusedError):
        api.ask("hello")
    assert api.ask("hello").endswith("hello")
    with pytest.raises(ValueError, match="cannot do nonsense"):
        api.stub.will("nonsense")
    with pytest.raises(TimeoutError, match="2 model requests in 0 s"):
        api.stub.wait_for_turns(3, 0)


def test_what_is_no_act_is_text(api: Talker) -> None:
    assert "nonsense" not in ACTS
    assert api.ask("<<nonsense>>") == "I have seen 1 user messages; last: <<nonsense>>"


def test_a_tool_is_called_once_and_its_answer_heard(stub: Stub) -> None:
    prompt = {"role": "user", "content": '<<tool Bash {"command": "id"}>>'}
    body: Json = {"model": "m", "messages": [prompt], "tools": [{"name": "Bash"}]}
    talker = Messages(stub, streamed=False)
    told = talker.post("/v1/messages", body, {"authorization": f"Bearer {KEY}"})
    (call,) = told["content"]
    assert (told["stop_reason"], call["name"], call["input"]) == ("tool_use", "Bash", {"command": "id"})
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "uid=0"}
    body["messages"] += [
        {"role": "assistant", "content": told["content"]},
        {"role": "user", "content": [result]},
    ]
    told = talker.post("/v1/messages", body, {"x-api-key": KEY})
    assert told["stop_reason"] == "end_turn"
    assert stub.turns[-1].tool_results == ("uid=0",)
    assert stub.turns[-1].tools == ("Bash",)


def test_a_tool_of_the_other_api_is_called_once_too(stub: Stub) -> None:
    prompt = {"role": "user", "content": '<<tool exec_command {"cmd": "id"}>>'}
    inner = {
        "type": "namespace",
        "name": "functions",
        "tools": [{"type": "function", "name": "exec_command"}],
    }
    body: Json = {"model": "m", "input": [{"type": "additional_tools", "tools": [inner]}, prompt]}
    talker = Responses(stub, streamed=False)
    key = {"authorization": f"Bearer {KEY}"}
    (call,) = talker.post("/v1/responses", body, key)["output"]
    assert (call["type"], call["name"]) == ("function_call", "exec_command")
    body["input"] += [call, {"type": "function_call_output", "call_id": call["call_id"], "output": "uid=0"}]
    (said,) = talker.post("/v1/responses", body, key)["output"]
    assert said["type"] == "message"
    assert stub.turns[-1].tools == ("exec_command",)
    assert stub.turns[-1].tool_results == ("uid=0",)


def test_the_api_with_the_model_in_its_path_calls_a_tool_once_too(stub: Stub) -> None:
    said: Json = {"role": "user", "parts": [{"text": '<<tool read_file {"path": "x"}>>'}]}
    body: Json = {"contents": [said], "tools": [{"functionDeclarations": [{"name": "read_file"}]}]}
    talker = Contents(stub, streamed=False)
    path, key = "/v1beta/models/gemini-2.5-flash:generateContent", {"x-goog-api-key": KEY}
    (call,) = talker.post(path, body, key)["candidates"][0]["content"]["parts"]
    assert call == {"functionCall": {"name": "read_file", "args": {"path": "x"}}}
    result = {"functionResponse": {"name": "read_file", "response": {"error": "there is no x"}}}
    body["contents"] += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    (answer,) = talker.post(path, body, key)["candidates"][0]["content"]["parts"]
    assert answer["text"].startswith("I have seen 1 user messages")
    assert stub.turns[-1].tools == ("read_file",)
    assert stub.turns[-1].tool_results == ("there is no x",)
    assert stub.turns[-1].model == "gemini-2.5-flash"


def test_what_the_gemini_api_tells_of_an_answers_cost(stub: Stub) -> None:
    contents = [{"role": "user", "parts": [{"text": "hello"}]}]
    path, key = "/v1beta/models/m:generateContent", {"x-goog-api-key": KEY}
    usage = Contents(stub, streamed=False).post(path, {"contents": contents}, key)["usageMetadata"]
    assert usage["promptTokenCount"] == 112
    assert usage["cachedContentTokenCount"] == 11
    assert usage["candidatesTokenCount"] + usage["thoughtsTokenCount"] == 13
    assert usage["totalTokenCount"] == 125


@pytest.mark.parametrize("streamed", [True, False])
def test_a_tool_of_chat_completions_is_called_once_too(stub: Stub, streamed: bool) -> None:
    messages: list[Json] = [{"role": "user", "content": '<<tool bash {"command": "id"}>>'}]
    offered = [{"type": "function", "function": {"name": "bash", "parameters": {}}}]
    talker = Completions(stub, streamed=streamed)
    told = talker.complete(messages, tools=offered)
    if streamed:
        call = told[1]["choices"][0]["delta"]["tool_calls"][0]
        assert told[-2]["choices"][0]["finish_reason"] == "tool_calls"
    else:
        (call,) = told["choices"][0]["message"]["tool_calls"]
        assert told["choices"][0]["finish_reason"] == "tool_calls"
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "bash",
        {"command": "id"},
    )
    messages += [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "uid=0"},
    ]
    talker.streamed = False
    (choice,) = talker.complete(messages, tools=offered)["choices"]
    assert choice["finish_reason"] == "stop"
    assert stub.turns[-1].tools == ("bash",)
    assert stub.turns[-1].tool_results == ("uid=0",)
    assert stub.turns[-1].said == (("user", messages[0]["content"]),)


def test_a_stream_of_chat_completions_ends_with_the_figures_and_a_word(stub: Stub) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "stream": True}
    key = {"authorization": f"Bearer {KEY}"}
    text = send(stub.url, "POST", "/chat/completions", json.dumps(body).encode(), headers=key)
    assert "event:" not in text
    *_, figures, last = text.strip().split("\n\n")
    assert last == "data: [DONE]"
    usage = json.loads(figures.removeprefix("data: "))["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (112, 13)
    assert usage["prompt_tokens_details"] == {"cached_tokens": 11}


def test_what_clients_of_chat_completions_add_is_not_heard_as_the_users(stub: Stub) -> None:
    reminder = {"type": "text", "text": "\n<system-reminder>today</system-reminder>"}
    messages: list[Json] = [
        {"role": "system", "content": "one"},
        {"role": "developer", "content": [{"type": "text", "text": "two"}]},
        {"role": "user", "content": [reminder, {"type": "text", "text": "hello"}, {"type": "image_url"}]},
        {"role": "user", "content": [reminder]},
        {"role": "user", "content": reminder["text"]},
        {"role": "assistant", "content": "an answer"},
    ]
    Completions(stub, streamed=False).complete(messages)
    assert stub.turns[-1].said == (("user", "hello"), ("assistant", "an answer"))
    assert stub.turns[-1].system == "one\ntwo"


def test_what_clients_add_of_themselves_is_not_heard_as_the_users(stub: Stub) -> None:
    reminder = {"type": "text", "text": "<system-reminder>today</system-reminder>"}
    blocks = [reminder, {"type": "text", "text": "hello"}]
    messages = [
        {"role": "system", "content": "cwd"},
        {"role": "user", "content": blocks},
        {"role": "user", "content": [reminder]},
    ]
    body: Json = {"model": "m", "messages": messages, "system": [{"type": "text", "text": "one"}]}
    Messages(stub, streamed=False).post("/v1/messages", body, {"x-api-key": KEY})
    assert stub.turns[-1].said == (("user", "hello"),)
    assert stub.turns[-1].system == "one"
    context = [{"type": "input_text", "text": "<environment_context>x</environment_context>"}]
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "two"}]},
        {"type": "message", "role": "user", "content": context},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "reasoning", "summary": []},
    ]
    key = {"authorization": f"Bearer {KEY}"}
    body = {"model": "m", "input": items, "instructions": "three"}
    Responses(stub, streamed=False).post("/v1/responses", body, key)
    assert stub.turns[-1].said == (("user", "hello"),)
    assert stub.turns[-1].system == "three\ntwo"
    parts = [{"text": "<session_context>cwd</session_context>"}, {"text": "hello"}]
    body = {
        "contents": [{"role": "user", "parts": parts[:1]}, {"role": "user", "parts": parts}],
        "systemInstruction": {"role": "user", "parts": [{"text": "four"}]},
    }
    key = {"x-goog-api-key": KEY}
    Contents(stub, streamed=False).post("/v1beta/models/m:generateContent", body, key)
    assert stub.turns[-1].said == (("user", "hello"),)
    assert stub.turns[-1].system == "four"


@pytest.mark.parametrize(
    ("headers", "code"), [({}, 404), ({"Upgrade": "websocket", "Connection": "Upgrade"}, 426)]
)
def test_everything_else_is_written_down_and_not_found(
    stub: Stub, headers: dict[str, str], code: int
) -> None:
    with pytest.raises(RefusedError) as raised:
        send(stub.url, "GET", "/v1/responses", headers=headers)
    assert raised.value.code == code
    assert [(seen.method, seen.path, seen.heard) for seen in stub.requests] == [
        ("GET", "/v1/responses", None)
    ]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b'{"model": 1, "messages": [{}]}', b'{"messages": [{"role": "nobody"}]}']
)
def test_what_it_does_not_understand_is_refused(stub: Stub, path: str, body: bytes) -> None:
    with pytest.raises(RefusedError) as raised:
        send(stub.url, "POST", path, body, headers={"x-api-key": KEY})
    assert raised.value.code == 400


def test_a_person_can_serve_one_until_standard_input_ends() -> None:
    served = subprocess.Popen(
        [sys.executable, "-m", "council.conformance.provider"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert served.stdin is not None
    assert served.stdout is not None
    with served:
        ready = json.loads(served.stdout.readline())
        with pytest.raises(RefusedError):
            send(ready["url"], "POST", "/v1/nothing", b"{}")
        served.stdin.close()
        assert served.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--help"], 0, list(ACTS)),
        (["x"], 2, ["argument port: invalid int value: 'x'"]),
        (["1", "192.0.2.1"], 2, ["nothing can listen on 192.0.2.1:1: Cannot assign requested address"]),
    ],
)
def test_a_person_is_told_what_it_does_and_what_was_wrong(
    words: list[str], code: int, told: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "council.conformance.provider", *words],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    for words_of_it in told:
        assert words_of_it in done.stdout + done.stderr


@pytest.mark.parametrize("act", ["answer", "cut"])
def test_by_https_an_answer_ends_as_it_should_and_a_cut_one_does_not(tmp_path: Path, act: str) -> None:
    """A client may take the end of a stream without TLS's own farewell for an attack."""
    names = [x509.DNSName("localhost")]
    held = issue_odd(forge_root(), names=names, usages=(SERVER_AUTH,)).write(tmp_path / "held")
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context(cafile=held.ca)
    server.load_cert_chain(held.cert, held.key)
    client.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    said = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    body = json.dumps(said).encode()
    head = f"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nx-api-key: {KEY}\r\ncontent-length: {len(body)}"
    with Stub("localhost", tls=server) as stub:
        assert stub.url.startswith("https://127.0.0.1:")
        stub.will(act)
        port = int(stub.url.rpartition(":")[2])
        with (
            socket.create_connection(("localhost", port), timeout=PATIENCE) as plain,
            client.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False) as sealed,
        ):
            sealed.sendall(f"{head}\r\n\r\n".encode() + body)
            if act == "cut":
                with pytest.raises(ssl.SSLEOFError):
                    _everything(sealed)
            else:
                assert b"event: message_stop" in _everything(sealed)


def _everything(connection: ssl.SSLSocket) -> bytes:
    pieces = []
    while piece := connection.recv(65536):
        pieces.append(piece)
    return b"".join(pieces)
