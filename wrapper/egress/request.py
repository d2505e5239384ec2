"""The head of a CONNECT request, and whether it may go where it wants to (RFC 9110 §9.3.6). Pure.

1. What is not understood to the last byte is refused; nothing of a request is ever passed on.
2. A host is on the list letter by letter, or it is not: no sub-domain, no trailing dot, no other case, no
   address.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from wrapper.egress.verdicts import Outcome, RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection

PORT = 443
"""The only port there is outside."""

HEAD_BYTES = 8192
"""The longest head of a request, its end included."""

END = b"\r\n\r\n"

_LINE = re.compile(rb"([!-~]+) ([!-~]+) HTTP/1\.[01]")
_TARGET = re.compile(rb"([^:\[\]]+|\[[^\[\]]*\]):([0-9]{1,5})")
_FIELD = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")
_BODY = re.compile(rb"(?i)(content-length|transfer-encoding):")

_NAME = re.compile(r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")

SHOWN = 120
"""How many characters of what somebody asked for are repeated."""


def host_named(head: bytes, allowed: Collection[str]) -> str:
    """The host on ``allowed`` to which the request ``head`` (up to and with `END`) asks for a tunnel.

    Raises `RefusedError`.
    """
    line, *fields = head.removesuffix(END).split(b"\r\n")
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise RefusedError(Outcome.MALFORMED, f"no request: {shown(line)}")
    if parts[1] != b"CONNECT":
        raise RefusedError(Outcome.METHOD, f"{shown(parts[1])} is not relayed: this proxy knows CONNECT only")
    target = _TARGET.fullmatch(parts[2])
    if target is None or any(_FIELD.fullmatch(field) is None or _BODY.match(field) for field in fields):
        raise RefusedError(Outcome.MALFORMED, f"no tunnel can be understood from {shown(head)}")
    host = target[1].decode("ascii")
    if host not in allowed:
        raise RefusedError(
            Outcome.HOST, f"{host[:SHOWN]} is not a host that this council's clients may reach"
        )
    if int(target[2]) != PORT:
        raise RefusedError(Outcome.PORT, f"{host}: port {int(target[2])} is closed; {PORT} is open")
    return host


def is_host(name: str) -> bool:
    """Whether ``name`` can be on the list: a host's full name in lower case, and no address."""
    return _NAME.fullmatch(name) is not None


_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")


def is_public(address: str) -> bool:
    """Whether the numeric ``address`` is of the public Internet, also where it wraps another one.

    The standard library's word alone is not enough: it calls multicast, site-local and translated addresses
    global.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(ip.packed[-4:])))
        if ip not in _UNICAST or ip.sixtofour is not None or ip.teredo is not None:
            return False
    return ip.is_global and not ip.is_multicast


def shown(said: bytes) -> str:
    """What a stranger sent, for a log: quoted, escaped and short."""
    return repr(said[:SHOWN])[1:]
