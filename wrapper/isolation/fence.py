"""The packets that a seat's client may send: the text that `nft` loads before the wrapper starts (§14.2).

What the client's user sends is refused unless it goes by TCP to one of the places it may reach. That covers
loopback, the container's own resolver, UDP, ICMP and IPv6, since all of them leave through one chain; it does
not cover UNIX sockets, which are no packets.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

TABLE = "consilium"

MAX_PORT = 65535


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One end that a client may connect to: an address as `nft` writes it, and a TCP port."""

    address: str
    port: int


@dataclass(frozen=True, slots=True, order=True)
class NamedPlace:
    """The same by name, as it is configured."""

    host: str
    port: int


def named_places(text: str) -> tuple[NamedPlace, ...]:
    """Read ``host:port,host:port``; spaces and empty entries do not count.

    Raises `ValueError` with a sentence for anything else.
    """
    return tuple(_named_place(entry) for entry in (part.strip() for part in text.split(",")) if entry)


def _named_place(entry: str) -> NamedPlace:
    host, colon, port = entry.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and 0 < int(port) <= MAX_PORT):
        raise ValueError(f"{entry!r} is not a host and a port, such as egress:8888")
    return NamedPlace(host, int(port))


def rules(uid: int, places: Iterable[Place]) -> str:
    """What `nft -f -` loads: the user ``uid`` reaches ``places`` and nothing else.

    Loading it again replaces it. Raises `ValueError` for an address that is none.
    """
    accepted = "".join(f"    {_accept(place)}\n" for place in sorted(set(places)))
    return f"""\
table inet {TABLE}
delete table inet {TABLE}
table inet {TABLE} {{
  chain output {{
    type filter hook output priority filter; policy accept;
    meta skuid {uid} goto client
  }}
  chain client {{
{accepted}\
    counter reject with icmpx type admin-prohibited
  }}
}}
"""


def _accept(place: Place) -> str:
    # Parsed and written again: nothing but an address can become part of a rule.
    address = ipaddress.ip_address(place.address)
    family = "ip6" if address.version == 6 else "ip"
    return f"{family} daddr {address} tcp dport {int(place.port)} accept"
