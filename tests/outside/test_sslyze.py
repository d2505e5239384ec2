"""What sslyze, and two probes that it has not, say of each of the Arbiter's doors.

The judgement is shown to be able to fail: a server that is weak in every way that we exclude is judged too.
"""

from __future__ import annotations

import ssl
import subprocess
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from outsiders import PATIENCE, arbiter, issue_all, program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from outsiders import Council

pytestmark = [pytest.mark.outside, pytest.mark.timeout(300)]

SCAN = Path(__file__).with_name("sslyze_scan.py")

HARMLESS = {
    "robot": "NOT_VULNERABLE_RSA_NOT_SUPPORTED",
    "early_data": False,
    "compression": False,
    "heartbleed": False,
    "ccs_injection": False,
    "renegotiation": False,
    "resumed_by_id": "SERVER_IS_TLS_1_3_ONLY",
    "resumed_by_ticket": "SERVER_IS_TLS_1_3_ONLY",
    "chain_in_order": [True],
    "failed": [],
}
"""What sslyze finds of a server without the faults that it knows."""

SUITES = {"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"}
"""The suites of RFC 8446 that OpenSSL offers; the rest are for small devices."""

NEW_SESSION_TICKET = 4
"""RFC 8446 §4.6.1."""


def scan(port: int, holder: Path) -> dict[str, Any]:
    """What sslyze finds on a port of loopback."""
    words = [program("sslyze", "python"), "-W", "ignore", str(SCAN)]
    words += [str(port), str(holder / "cert.pem"), str(holder / "key.pem")]
    found = subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE)
    answer: dict[str, Any] = orjson.loads(found.stdout)
    assert answer["reached"], answer
    return answer


def faults(found: dict[str, Any]) -> set[str]:
    """The names of what is wrong with a server."""
    wrong = {name for name, good in HARMLESS.items() if found[name] != good}
    wrong |= {version for version, spoken in found["versions"].items() if spoken and version != "tls_1_3"}
    if not found["versions"]["tls_1_3"]:
        wrong.add("no tls_1_3")
    if not set(found["ciphers"]["tls_1_3"]) <= SUITES:
        wrong.add("ciphers")
    return wrong


def client(holder: Path | None, ca: Path) -> ssl.SSLContext:
    """A client of the standard library that speaks TLS 1.3 only."""
    context = ssl.create_default_context(cafile=ca / "ca.pem")
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    if holder is not None:
        context.load_cert_chain(holder / "cert.pem", holder / "key.pem")
    return context


def post_handshake(port: int, context: ssl.SSLContext) -> tuple[list[int], str]:
    """The types of the server's handshake messages, and how the first read after the handshake ended."""
    types: list[int] = []

    def note(_: object, direction: str, _version: object, kind: Any, message: Any, _data: bytes) -> None:
        if direction == "read" and kind == 22:
            types.append(int(message))

    vars_of: Any = context
    vars_of._msg_callback = note
    with socket_to(port) as raw, context.wrap_socket(raw, server_hostname="localhost") as stream:
        stream.settimeout(2)
        try:
            stream.sendall(b"{}\n")
            stream.recv(100)
        except TimeoutError:
            return types, "silence"
        except OSError as error:
            return types, str(error)
        return types, "data"


@contextmanager
def socket_to(port: int) -> Iterator[Any]:
    import socket  # noqa: PLC0415 - only here

    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as raw:
        yield raw


@contextmanager
def weak_server(certs: Path) -> Iterator[int]:
    """A server with our certificate and none of our settings."""
    import socket  # noqa: PLC0415 - only here

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certs / "arbiter" / "cert.pem", certs / "arbiter" / "key.pem")
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        listener.settimeout(0.1)
        stop = threading.Event()

        def serve_one(raw: socket.socket) -> None:
            with suppress(OSError), raw:
                raw.settimeout(5)
                with context.wrap_socket(raw, server_side=True) as stream:
                    while stream.recv(4096):
                        pass

        def serve() -> None:
            while not stop.is_set():
                with suppress(TimeoutError):
                    raw, _ = listener.accept()
                    threading.Thread(target=serve_one, args=(raw,), daemon=True).start()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            stop.set()
            thread.join()


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Council]:
    with arbiter(tmp_path_factory.mktemp("council")) as running:
        yield running


@pytest.mark.parametrize("door", ["control", "data", "admin"])
def test_sslyze_finds_nothing_wrong_with_a_door(council: Council, door: str) -> None:
    holder = council.certs / ("anna" if door == "admin" else "ada")
    assert faults(scan(council.ports[door], holder)) == set()


@pytest.mark.parametrize("door", ["control", "data", "admin"])
def test_a_door_asks_for_a_certificate_and_gives_no_ticket(council: Council, door: str) -> None:
    # sslyze says nothing of either for TLS 1.3.
    ca = council.certs / "ada"
    _, ended = post_handshake(council.ports[door], client(None, ca))
    assert "CERTIFICATE_REQUIRED" in ended
    types, _ = post_handshake(council.ports[door], client(ca, ca))
    assert types, "no handshake message was seen at all"
    assert NEW_SESSION_TICKET not in types


def test_the_judgement_can_fail(tmp_path: Path) -> None:
    certs = issue_all(tmp_path)
    with weak_server(certs) as port:
        found = faults(scan(port, certs / "ada"))
        types, ended = post_handshake(port, client(None, certs / "ada"))
    assert {"tls_1_2", "resumed_by_ticket"} <= found
    assert NEW_SESSION_TICKET in types
    assert ended == "silence"
