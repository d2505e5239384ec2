"""A network in a test: hosts in network namespaces of their own, joined by cables that lose, delay and break.

    with Lan() as lan:
        hall = lan.host("hall", "10.77.0.1")
        guest = lan.host("guest", "10.77.0.2")
        guest.cable.delay, guest.cable.loss = 0.08, 0.05
        guest.cable.cut = True

Not every kernel has netem. Each host therefore has a TUN device whose other end is here: one thread passes
packets on by their destination, after the delay, or drops them. What TCP makes of that is real.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import random  # noqa: TID251 - which packets are lost
import select
import shutil
import struct
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
MTU = 1400
DESTINATION = slice(16, 20)
"""Where an IPv4 header has it."""


def unavailable() -> str:
    """Why there can be no such network here; empty if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or not Path("/dev/net/tun").exists():
        return "network namespaces need iproute2 and /dev/net/tun"
    probe = f"consilium-probe-{os.getpid()}"
    if subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False).returncode:
        return "network namespaces cannot be made here"
    subprocess.run(["ip", "netns", "delete", probe], check=True)
    return ""


@dataclass
class Cable:
    """What happens to packets between a host and the others, in both directions."""

    delay: float = 0.0
    loss: float = 0.0
    cut: bool = False

    def lets_through(self) -> bool:
        return not self.cut and random.random() >= self.loss


@dataclass
class Host:
    """One host: its namespace, its address, its cable."""

    namespace: str
    device: str
    address: str
    cable: Cable = field(default_factory=Cable)

    def command(self, *words: str) -> list[str]:
        """``words``, to be run on this host."""
        return ["ip", "netns", "exec", self.namespace, *words]

    def ip(self, *words: str) -> None:
        subprocess.run(["ip", "-n", self.namespace, *words], check=True, capture_output=True)


class Lan:
    """The hosts, and the thread between them."""

    def __init__(self) -> None:
        self._hosts: dict[int, Host] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._pass_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        for device, host in self._hosts.items():
            os.close(device)
            subprocess.run(["ip", "netns", "delete", host.namespace], check=False)

    def host(self, name: str, address: str) -> Host:
        """A new host with its cable plugged in."""
        device = f"cj{os.getpid() % 100_000}{name[:6]}"
        host = Host(f"consilium-{os.getpid()}-{name}", device, address)
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
        subprocess.run(["ip", "netns", "add", host.namespace], check=True)
        subprocess.run(["ip", "link", "set", device, "netns", host.namespace], check=True)
        host.ip("link", "set", "lo", "up")
        host.ip("link", "set", device, "mtu", str(MTU), "up")
        host.ip("address", "add", f"{address}/24", "dev", device)
        self._hosts[end] = host
        return host

    def move(self, host: Host, address: str) -> None:
        """Give ``host`` another address; what was bound to the old one is not told."""
        host.ip("address", "delete", f"{host.address}/24", "dev", host.device)
        host.ip("address", "add", f"{address}/24", "dev", host.device)
        host.address = address

    def _pass_on(self) -> None:
        under_way: list[tuple[float, int, int, bytes]] = []
        count = 0
        while not self._stop.is_set():
            ends = list(self._hosts)
            readable, _, _ = select.select(ends, [], [], 0.002 if under_way else 0.05)
            now = time.monotonic()
            for end in readable:
                packet = os.read(end, 65536)
                to = self._to(packet)
                if to is None:
                    continue
                both = self._hosts[end].cable, self._hosts[to].cable
                if all(cable.lets_through() for cable in both):
                    count += 1
                    due = now + sum(cable.delay for cable in both)
                    heapq.heappush(under_way, (due, count, to, packet))
            while under_way and under_way[0][0] <= now:
                _, _, to, packet = heapq.heappop(under_way)
                if not self._hosts[to].cable.cut:
                    os.write(to, packet)

    def _to(self, packet: bytes) -> int | None:
        there = ".".join(map(str, packet[DESTINATION]))
        return next((end for end, host in self._hosts.items() if host.address == there), None)


def consilium_on(host: Host | None, python: str, *words: str) -> Sequence[str]:
    """The command line of ``consilium`` on ``host``, or here."""
    own = [python, "-P", "-m", "consilium", *words]
    return own if host is None else host.command(*own)
