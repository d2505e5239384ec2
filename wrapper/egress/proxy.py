"""The proxy's connections: each is judged, and then carried until it ends (security: the way out of a seat).

1. Nothing that a client sends reaches the outside before CONNECT, address and ClientHello are judged.
2. The name is resolved here, once, and the connection is made to an address that was judged: a name that
   answers differently the next time changes nothing.
3. Whatever one connection does, the others go on: each has bounds, and its failure ends here.
"""

from __future__ import annotations

import logging
import socket
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio.abc import SocketAttribute

from consilium.bucket import TokenBucket
from wrapper.egress.hello import Hello
from wrapper.egress.request import END, HEAD_BYTES, PORT, host_named, is_public
from wrapper.egress.verdicts import Outcome, RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from anyio.abc import ByteStream, SocketListener, SocketStream

    Resolve = Callable[[str], Awaitable[Sequence[str]]]
    Dial = Callable[[str, int], Awaitable[ByteStream]]

CHUNK = 65536

MOST_ADDRESSES = 4
"""So many addresses of one name are tried, in the resolver's order."""

PARTING_SECONDS, PARTING_CHUNKS = 1.0, 16
"""How long, and for how much, somebody who was refused is still listened to."""

BACK_OFF_SECONDS = 0.5

MOST_TURNED_AWAY = 32
"""So many for whom there is no room are told so at a time; the others are just closed."""

LOG_RATE, LOG_BURST = 1.0, 30
"""Log lines about one address, a second and at once: a flood of them would roll away what others did."""

MOST_ADDRESSES_KNOWN = 256
"""Of so many addresses it is known how much was said; of all others together it is counted as of one."""

STATUS = {
    Outcome.MALFORMED: "400 Bad Request",
    Outcome.METHOD: "405 Method Not Allowed",
    Outcome.SLOW: "408 Request Timeout",
    Outcome.UNRESOLVED: "502 Bad Gateway",
    Outcome.UNREACHABLE: "502 Bad Gateway",
    Outcome.CROWDED: "503 Service Unavailable",
}
"""What a refusal before the tunnel is called in HTTP; any other is 403 Forbidden."""

OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"

ACCESS_DENIED = bytes((21, 3, 3, 0, 2, 2, 49))
"""The TLS alert for a refusal in the tunnel: the client says why its handshake failed."""

log = logging.getLogger("consilium.egress")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one client may take. Times are in seconds."""

    connections: int = 256
    per_address: int = 64
    head: float = 5.0
    """From the connection to the end of the request's head, and again to the end of the ClientHello."""
    reach: float = 10.0
    """To resolve the name, and to connect to one address."""
    idle: float = 900.0
    """A tunnel through which nothing came, in either way: longer than any model thinks about one turn."""


class Tally(Protocol):
    """Who counts. `wrapper.egress.counting` does it for Prometheus."""

    def judged(self, outcome: Outcome) -> None:
        """Take what became of one request."""

    def opened(self, change: int) -> None:
        """Take that a connection came (1) or went (-1)."""

    def carried(self, direction: str, count: int) -> None:
        """Take ``count`` bytes that were passed on ``out`` or ``in``."""


async def resolve(host: str) -> Sequence[str]:
    """The addresses of ``host``, numeric, in the resolver's order. Raises `OSError`."""
    found = await anyio.getaddrinfo(host, PORT, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


async def dial(address: str, port: int) -> ByteStream:
    """A connection to a numeric address. Raises `OSError`."""
    return await anyio.connect_tcp(address, port)


class Proxy:
    """Judges and carries connections."""

    def __init__(
        self,
        allowed: Collection[str],
        tally: Tally,
        *,
        bounds: Bounds | None = None,
        resolve: Resolve = resolve,
        dial: Dial = dial,
    ) -> None:
        """``allowed`` are hosts as `wrapper.egress.request.is_host` has them."""
        self._allowed = frozenset(allowed)
        self._tally = tally
        self._bounds = bounds or Bounds()
        self._resolve = resolve
        self._dial = dial
        self._open: Counter[str] = Counter()
        self._told: dict[str, TokenBucket] = {}
        self._untold: Counter[str] = Counter()
        self._turned_away = 0

    def allow(self, hosts: Collection[str]) -> None:
        """Judge by another list from here on; what is carried already goes on."""
        self._allowed = frozenset(hosts)

    async def serve(self, listener: SocketListener) -> None:
        """Serve every connection that comes to ``listener``, until it is closed."""
        async with anyio.create_task_group() as connections:
            while True:
                try:
                    client = await listener.accept()
                except anyio.ClosedResourceError:
                    return
                except OSError as error:  # no descriptor is left, say; those who are here go on
                    log.error("no connection can be taken: %s", error)  # noqa: TRY400 - said in full
                    await anyio.sleep(BACK_OFF_SECONDS)
                else:
                    connections.start_soon(self.handle, client)

    async def handle(self, client: SocketStream) -> None:
        """Serve one connection to its end. Raises nothing but cancellation."""
        address = _address(client)
        try:
            if (full := self._full(address)) is None:
                await self._admit(client, address)
            else:
                self._note(address, full)
                await self._turn_away(client, full)
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass  # how connections end
        except Exception:  # rule 3: a bug ends this connection alone
            log.exception("a bug in the egress proxy; please report what follows")
        finally:
            with suppress(Exception):
                await anyio.aclose_forcefully(client)

    def _full(self, address: str) -> RefusedError | None:
        """Why there is no room for one more connection from ``address``."""
        bounds = self._bounds
        if self._open.total() >= bounds.connections:
            return RefusedError(Outcome.CROWDED, f"{bounds.connections} connections are open")
        if self._open[address] >= bounds.per_address:
            return RefusedError(
                Outcome.CROWDED, f"{bounds.per_address} connections are open from there already"
            )
        return None

    async def _turn_away(self, client: ByteStream, full: RefusedError) -> None:
        """Say that there is no room. A flood is not listened to, and takes nobody's place."""
        if self._turned_away < MOST_TURNED_AWAY:
            self._turned_away += 1
            try:
                await _answer(client, full)
            finally:
                self._turned_away -= 1

    async def _admit(self, client: ByteStream, address: str) -> None:
        self._open[address] += 1
        self._tally.opened(1)
        try:
            await self._serve(client, address)
        finally:
            self._tally.opened(-1)
            self._open[address] -= 1
            if not self._open[address]:
                del self._open[address]

    async def _serve(self, client: ByteStream, address: str) -> None:
        try:
            host, early = await self._read_head(client)
            upstream = await self._reach(host)
        except RefusedError as refusal:
            self._note(address, refusal)
            await _answer(client, refusal)
            return
        try:
            await client.send(OPENED)
            try:
                hello = await self._read_hello(client, host, early)
            except RefusedError as refusal:
                self._note(address, RefusedError(refusal.outcome, f"{host}: {refusal.sentence}"))
                await _part(client, ACCESS_DENIED)
                return
            self._tally.judged(Outcome.ALLOWED)
            self._tell(logging.INFO, address, f"a tunnel to {host}")
            await self._carry(client, upstream, hello)
        finally:
            with suppress(Exception):
                await anyio.aclose_forcefully(upstream)

    def _note(self, address: str, refusal: RefusedError) -> None:
        self._tally.judged(refusal.outcome)
        self._tell(logging.WARNING, address, f"refused ({refusal.outcome}): {refusal.sentence}")

    def _tell(self, level: int, address: str, sentence: str) -> None:
        """Log what became of a request, as far as the log can take it; every one is counted."""
        key = address if address in self._told or len(self._told) < MOST_ADDRESSES_KNOWN else ""
        bucket = self._told.setdefault(key, TokenBucket(LOG_RATE, LOG_BURST))
        if not bucket.take(anyio.current_time()):
            self._untold[key] += 1
            return
        log.log(level, "%s: %s", address, sentence)
        if untold := self._untold.pop(key, 0):
            log.log(level, "%s: %d more before this were not told, only counted", address, untold)

    # --- what is judged ------------------------------------------------------------------------------

    async def _read_head(self, client: ByteStream) -> tuple[str, bytes]:
        """The host that is asked for, and what came after the request."""
        head = b""
        with anyio.move_on_after(self._bounds.head):
            while END not in head:
                if len(head) >= HEAD_BYTES:
                    raise RefusedError(
                        Outcome.MALFORMED, f"the request's head is longer than {HEAD_BYTES} bytes"
                    )
                head += await client.receive(HEAD_BYTES - len(head))
            head, end, early = head.partition(END)
            return host_named(head + end, self._allowed), early
        raise RefusedError(Outcome.SLOW, f"no request came within {self._bounds.head:g} s")

    async def _reach(self, host: str) -> ByteStream:
        """A connection to ``host``, at an address that is public."""
        for address in (await self._addresses(host))[:MOST_ADDRESSES]:
            with suppress(OSError), anyio.move_on_after(self._bounds.reach):
                return await self._dial(address, PORT)
        raise RefusedError(Outcome.UNREACHABLE, f"{host} cannot be reached")

    async def _addresses(self, host: str) -> list[str]:
        found: list[str] = []
        with suppress(OSError), anyio.move_on_after(self._bounds.reach):
            found = list(dict.fromkeys(await self._resolve(host)))
        if not found:
            raise RefusedError(Outcome.UNRESOLVED, f"{host} has no address")
        # One that is not public casts doubt on all: whoever answered for this name is not to be trusted.
        for address in found:
            if not is_public(address):
                raise RefusedError(Outcome.ADDRESS, f"{host} leads to {address}, which is not public")
        return found

    async def _read_hello(self, client: ByteStream, host: str, early: bytes) -> bytes:
        """The ClientHello, with what came after it, once it names ``host``."""
        hello = Hello()
        with anyio.move_on_after(self._bounds.head):
            name = hello.feed(early)
            while name is None:
                name = hello.feed(await client.receive(CHUNK))
            if name != host:
                raise RefusedError(Outcome.OTHER_NAME, f"the ClientHello names {name!r}")
            return bytes(hello.taken)
        raise RefusedError(Outcome.SLOW, f"no ClientHello came within {self._bounds.head:g} s")

    # --- what is carried -----------------------------------------------------------------------------

    async def _carry(self, client: ByteStream, upstream: ByteStream, hello: bytes) -> None:
        """Pass bytes both ways until both have ended, one fails, or nothing comes for too long."""
        await upstream.send(hello)
        self._tally.carried("out", len(hello))
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._pass_on, client, upstream, "out", scope)
                tasks.start_soon(self._pass_on, upstream, client, "in", scope)

    async def _pass_on(
        self, source: ByteStream, sink: ByteStream, direction: str, scope: anyio.CancelScope
    ) -> None:
        try:
            while True:
                scope.deadline = anyio.current_time() + self._bounds.idle
                data = await source.receive(CHUNK)
                await sink.send(data)
                self._tally.carried(direction, len(data))
        except anyio.EndOfStream:
            with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                await sink.send_eof()
        except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            scope.cancel()


async def _answer(client: ByteStream, refusal: RefusedError) -> None:
    """Say in HTTP that a request is refused, and why."""
    said = f"consilium egress: {refusal.sentence}\n".encode("ascii", "replace")
    status = STATUS.get(refusal.outcome, "403 Forbidden")
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(said)}\r\nConnection: close"
    )
    await _part(client, head.encode() + END + said)


async def _part(client: ByteStream, last: bytes) -> None:
    """Send ``last``, and let it arrive: a socket that is closed over unread bytes takes back what it sent."""
    with anyio.move_on_after(PARTING_SECONDS), suppress(anyio.EndOfStream):
        await client.send(last)
        await client.send_eof()
        for _ in range(PARTING_CHUNKS):
            await client.receive(CHUNK)


def _address(client: SocketStream) -> str:
    remote = client.extra(SocketAttribute.remote_address, None)
    return str(remote[0]) if remote is not None else "a peer already gone"
