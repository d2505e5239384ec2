"""How much of the Arbiter one peer may take: pure counting, with the time as an argument."""

from __future__ import annotations

import ipaddress
from collections import Counter
from typing import Annotated

from pydantic import Field

from consilium.config import Section
from consilium.conversation import SILENT_INTERVALS

Places = Annotated[int, Field(ge=1, le=65_536)]
Patience = Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)]


class Doors(Section):
    """What holds for whoever comes, before and after it is known who that is; for each of the three ports.

    ``handshakes`` is how many may be under way at a time, at about 60 KiB each; of these,
    ``handshakes_per_address`` from one address: enough for a host full of seats that reconnect at once.
    ``handshake_seconds`` bounds one of them. Then the first message must come within
    ``first_message_seconds``, a peer that is silent for ``silent_intervals`` whole heartbeats is gone, and so
    is one to which a write takes longer than ``write_seconds``.
    """

    handshakes: Places = 256
    handshakes_per_address: Places = 64
    handshake_seconds: Patience = 5
    first_message_seconds: Patience = 5
    silent_intervals: Annotated[int, Field(ge=2, le=100)] = SILENT_INTERVALS
    write_seconds: Patience = 10


class HandshakeGate:
    """Count the handshakes under way on one port, in all and by address.

    An address that waits in handshakes uses up its own places, not everybody's.
    """

    def __init__(self) -> None:
        self._inside: Counter[str] = Counter()
        self._count = 0

    @property
    def inside(self) -> int:
        """How many handshakes are under way."""
        return self._count

    def enter(self, address: str, doors: Doors) -> str | None:
        """Take a place for ``address``, or return the sentence that says why there is none."""
        key = neighbourhood(address)
        if self._count >= doors.handshakes:
            return f"{self._count} handshakes are under way already"
        if self._inside[key] >= doors.handshakes_per_address:
            return f"{self._inside[key]} handshakes from {key} are under way already"
        self._inside[key] += 1
        self._count += 1
        return None

    def leave(self, address: str) -> None:
        """Give back a place that `enter` granted."""
        key = neighbourhood(address)
        self._count -= 1
        self._inside[key] -= 1
        if not self._inside[key]:
            del self._inside[key]


def neighbourhood(address: str) -> str:
    """Name what one party holds: an IPv4 address, or a whole IPv6 /64, which is what a subscriber gets."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return address
    if ip.version == 4:
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip.packed[:8] + bytes(8), 64)))
