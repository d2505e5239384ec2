"""What a probe of TLS is, how kinds of them are gathered, and what they are made of; see `tests/perimeter`.

A kind of probe is a function that yields probes: a word for each, what is done, and how it must end. To add a
line is to add a probe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tls13 import Client

ENDS = {"closed", "reset"}
"""Ends without a word: what TLS allows where nothing sensible was said."""

DECODE = {"decode_error"}
PARAMETER = {"illegal_parameter"}
UNEXPECTED = {"unexpected_message"}
BAD_MAC = {"bad_record_mac"}
OVERFLOW = {"record_overflow"}
VERSION = {"protocol_version"}
SYNTAX = DECODE | PARAMETER
GOES_ON = {"certificate_required"}
"""The probe was no mistake: the handshake went on, and ends for want of a certificate."""


@dataclass
class Probe:
    """What is done on a connection, and the endings that are right.

    ``member``: with a good certificate. ``door``: on this one only. ``waits``: this end stays open, so that
    it is the other that ends it.
    """

    label: str
    act: Callable[[Client], None]
    endings: set[str]
    member: bool = False
    door: str | None = None
    waits: bool = False


Kind = Callable[[], Iterator[Probe]]
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    KINDS[function.__name__] = function
    return function


def raw(data: bytes) -> Callable[[Client], None]:
    return lambda client: client.send_raw(data)


def greeting(hello: bytes) -> Callable[[Client], None]:
    """A ClientHello; should it be taken, a whole handshake without a certificate."""

    def act(client: Client) -> None:
        client.send_hello(hello)
        client.read_server_flight()
        client.send_flight(client.flight())

    return act


def template() -> Client:
    """Something to build messages with, of which nothing is sent."""
    return Client(raw=None)  # type: ignore[arg-type]  # it is never connected


def with_extensions(**changed: bytes | None) -> bytes:
    """A ClientHello of which some extensions are others, or left out."""
    made = template()
    found = made.extensions() | changed
    return made.hello(b"".join(each for each in found.values() if each is not None))


def greeting_in(data: bytes) -> Callable[[Client], None]:
    """Send the good ClientHello in records of one's own making, then go on."""

    def act(client: Client) -> None:
        client.transcript = client.hello()
        client.send_raw(data)
        client.read_server_flight()
        client.send_flight(client.flight())

    return act
