"""What Prometheus reads of an Arbiter: a page fetched, taken apart, and looked up in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Mapping

    from house import Home

HOST = "127.0.0.1"
PATIENCE = 20.0


@dataclass(frozen=True)
class Reply:
    """What came back on one connection."""

    status: int
    headers: Mapping[str, str]
    body: bytes


async def ask(port: int, request: bytes = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n") -> Reply:
    """Send ``request``, and read to the end of the connection."""
    with anyio.fail_after(PATIENCE):
        async with await anyio.connect_tcp(HOST, port) as stream:
            await stream.send(request)
            said = b""
            try:
                while True:
                    said += await stream.receive()
            except anyio.EndOfStream:
                return parse(said)


def parse(said: bytes) -> Reply:
    """Take a response apart."""
    head, _, body = said.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines)
    assert len(body) == int(headers["Content-Length"])
    return Reply(int(first.split()[1]), headers, body)


class Page:
    """The figures of one scrape: ``page("consilium_debate_state", state="RUNNING")``."""

    def __init__(self, body: bytes) -> None:
        self.families = {each.name: each for each in text_string_to_metric_families(body.decode())}
        self.samples = [sample for family in self.families.values() for sample in family.samples]

    def all(self, name: str, **labels: str) -> list[Any]:
        """Every sample of a name whose labels hold these."""
        return [
            sample
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def __call__(self, name: str, **labels: str) -> float | None:
        """The value of the one sample; None if there is none."""
        found = self.all(name, **labels)
        assert len(found) <= 1, found
        return found[0].value if found else None

    def one_of(self, name: str, label: str, **labels: str) -> str:
        """Which value of ``label`` has the 1, where one has and the others have 0."""
        found = self.all(name, **labels)
        assert sorted(sample.value for sample in found) == [0.0] * (len(found) - 1) + [1.0]
        (one,) = (sample.labels[label] for sample in found if sample.value)
        return str(one)


async def scrape(home: Home) -> Page:
    """Fetch what the house shows now: no page that was made before."""
    board = home.house.board
    assert board is not None
    board._door._fresh = 0.0
    reply = await ask(int(home.ports["metrics"]))
    assert reply.status == 200, reply
    return Page(reply.body)
