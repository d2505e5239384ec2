"""A stub provider on loopback that speaks the APIs of the real ones, and writes down what it was sent.

`python -m council.conformance.provider` serves one for a person or for a container.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Protocol, Self, cast

from council.conformance.provider import anthropic, completions, gemini, responses
from council.conformance.provider.script import ACTS, STATUSES, Act, Heard, ordered, reply_to

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator, Mapping

    from council.conformance.provider.script import Reply

    class Api(Protocol):
        """What a module of an API offers."""

        PATH: re.Pattern[str]
        """What the path of a model request ends like, its query left out."""
        ASCII: bool
        """Whether a stream holds nothing else, other characters being escaped; a client may rely on it."""
        NAMED_EVENTS: bool
        """Whether each event of a stream bears its type as its name."""
        LAST: str | None
        """What a stream ends with, after its last event."""

        def key_is_known(self, headers: Mapping[str, str]) -> bool:
            """Whether the request came with the one key."""
            ...

        def hear(self, body: dict[str, Any], path: str) -> Heard:
            """What a request says. Raises `KeyError`, `TypeError` or `ValueError` for one of another form."""
            ...

        def whole(self, reply: Reply, model: str) -> dict[str, Any]:
            """An answer in one piece."""
            ...

        def events(self, reply: Reply, model: str) -> Iterator[dict[str, Any]]:
            """An answer as it streams."""
            ...

        def error(self, status: int, words: str, *, quota: bool) -> dict[str, Any]:
            """An error's body."""
            ...


APIS = cast("tuple[Api, ...]", (anthropic, completions, gemini, responses))

FAREWELL_SECONDS = 2.0

MAX_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it came: ``heard`` is None for what belongs to no API that we speak."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    heard: Heard | None
    act: Act


class Stub:
    """A provider for as long as the context lasts. ``url`` is where it is, ``requests`` what it was sent."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, tls: ssl.SSLContext | None = None) -> None:
        """``tls``: for clients that go through a proxy, which lets nothing else pass."""
        self.requests: list[Request] = []
        self.script: deque[Act] = deque()
        """What is done with the coming requests, one after the other, in place of what the prompts order."""
        self._over = threading.Event()
        self._server = _Server((host, port), _Handler)
        self._server.stub = self
        self._server.tls = tls
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def url(self) -> str:
        """The provider's address, without a path."""
        host, port = self._server.server_address[:2]
        return f"http{'s' if self._server.tls else ''}://{host!s}:{port}"

    @property
    def turns(self) -> list[Heard]:
        """The model requests, oldest first."""
        return [request.heard for request in self.requests if request.heard is not None]

    def will(self, *names: str) -> None:
        """Do these with the coming requests; ``answer`` is an answer."""
        for name in names:
            act, _, argument = name.partition(" ")
            if act not in ACTS and act != "answer":
                raise ValueError(f"the stub cannot do {act}")
            self.script.append(Act(act, argument))

    def wait_for_turns(self, number: int, seconds: float = 30) -> None:
        """Return as soon as there were that many model requests; blocking. Raises `TimeoutError`."""
        until = time.monotonic() + seconds
        while len(self.turns) < number:
            if time.monotonic() >= until:
                raise TimeoutError(f"{len(self.turns)} model requests in {seconds:g} s")
            time.sleep(0.02)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def act_for(self, heard: Heard) -> Act:
        """What shall be done with this request."""
        return self.script.popleft() if self.script else ordered(heard)

    def wait(self, connection: socket.socket) -> None:
        """Say nothing until the client has gone, or the stub has to."""
        connection.settimeout(0.1)
        while not self._over.is_set():
            try:
                if not connection.recv(4096):
                    return
            except TimeoutError:
                continue
            except OSError:
                return


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    stub: Stub
    tls: ssl.SSLContext | None = None

    def get_request(self) -> tuple[socket.socket, Any]:
        """The next connection. Its handshake is for its own thread to do, with the first bytes."""
        connection, address = super().get_request()
        if self.tls is not None:
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever hangs up in the middle is a client that was ended: nothing to be told of."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        api = next((api for api in APIS if api.PATH.search(path)), None)
        length = min(int(self.headers.get("content-length", 0)), MAX_BODY)
        raw = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(raw)
            heard = api.hear(body, path) if api else None
        except (ValueError, KeyError, TypeError) as problem:
            return self._json(400, {"error": f"the stub does not understand this: {problem!r}"})
        act = self.server.stub.act_for(heard) if heard else Act()
        self.server.stub.requests.append(Request("POST", self.path, headers, body, heard, act))
        if api is None or heard is None:
            return self._json(404, {"error": "the stub has nothing here"})
        if not api.key_is_known(headers):
            return self._json(401, api.error(401, "the stub does not know this key", quota=False))
        return self._answer(api, heard, act)

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.stub.requests.append(Request(self.command, self.path, headers, {}, None, Act()))
        # 426: Codex asks for a WebSocket first, and then does without.
        self._json(426 if "upgrade" in headers else 404, {"error": "the stub has nothing here"})

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it so
        """Say nothing: the requests are written down."""

    def _answer(self, api: Api, heard: Heard, act: Act) -> None:
        if act.name in STATUSES:
            status, quota = STATUSES[act.name], act.name == "quota"
            words = f"the stub was told to answer {act.name}: {ACTS[act.name].partition(';')[0]}"
            after = {"retry-after": act.argument or "1"} if act.name == "429" else {}
            return self._json(status, api.error(status, words, quota=quota), after)
        if act.name == "hang":
            self.close_connection = True
            return self.server.stub.wait(self.connection)
        reply = reply_to(heard, act)
        if heard.streamed:
            return self._stream(api, list(api.events(reply, heard.model)), act)
        if act.name in ("cut", "hang_midway"):
            self.close_connection = True
            return None if act.name == "cut" else self.server.stub.wait(self.connection)
        return self._json(200, api.whole(reply, heard.model))

    def _stream(self, api: Api, events: list[dict[str, Any]], act: Act) -> None:
        broken = act.name in ("cut", "hang_midway")
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events[: len(events) // 2] if broken else events:
            # Control characters travel as they would from a provider.
            data = json.dumps(event, ensure_ascii=api.ASCII)
            name = f"event: {event['type']}\n" if api.NAMED_EVENTS else ""
            self.wfile.write(f"{name}data: {data}\n\n".encode("utf-8", "surrogatepass"))
        if api.LAST is not None and not broken:
            self.wfile.write(f"data: {api.LAST}\n\n".encode())
        self.wfile.flush()
        if act.name == "hang_midway":
            self.server.stub.wait(self.connection)
        with suppress(OSError):
            if isinstance(self.connection, ssl.SSLSocket) and not broken:
                self.connection.settimeout(FAREWELL_SECONDS)
                self.connection.unwrap()  # else the end of the stream looks like one that was cut
            self.connection.shutdown(socket.SHUT_RDWR)

    def _json(self, status: int, document: dict[str, Any], headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
