"""An Arbiter in this process, over real TLS on loopback, and those who come to it: seats and an operator.

    async with house(tmp_path, council(("ada", "bob"))) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.speaks("First.")
        assert (await bob.turn()).delta[0].text == "First."

Everybody speaks the protocol itself, line by line: whatever a real wrapper would never say can be said here.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import orjson
from anyio.abc import SocketAttribute
from certificates import clock as real_time

from arbiter.debate import Debate
from arbiter.edge.limits import Doors
from arbiter.edge.listener import Door, HandshakeOutcome, bind
from arbiter.edge.sockets import open_sockets
from arbiter.inbox import SIZE, Inbox
from arbiter.journal import Journal
from arbiter.main import House, _place, _Porter, follow
from arbiter.metrics.board import Board
from arbiter.observe import NOBODY
from arbiter.reception import Reception
from arbiter.reload import Configuration, Reloader, Sources
from arbiter.service import Service
from consilium import messages as m
from consilium.channel import Channel
from consilium.codec import Codec
from consilium.errors import ChannelError, TranscriptError
from consilium.framing import MAX_ARBITER_LINE_BYTES
from consilium.headseal import HeadSigner
from consilium.profile import DEFAULT_PROFILES
from consilium.tls import TlsStream, client_context
from consilium.transcript import read_head, read_records
from consilium.unixstream import connect_unix
from pki.authority import Authority

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import SocketListener, SocketStream
    from revocations import Pki

    from arbiter.debate.events import Event
    from arbiter.disk import Disk
    from consilium.codec import Line
    from consilium.config import Council
    from consilium.profile import CapabilityProfile
    from consilium.records import Stored
    from pki.terms import Profile

Kind = TypeVar("Kind", bound=m.Message)

HOST = "127.0.0.1"

TRANSPORT = "tcp"
"""What houses listen on, or ``unix``; see `houses.transport`."""

DOORS = Doors()

PATIENCE = 20.0
"""Seconds that a test waits for the Arbiter before it fails."""

TO_PEER: Mapping[str, Codec[Any]] = {
    "control": Codec(m.ControlToSeat),
    "data": Codec(m.DataToSeat),
    "admin": Codec(m.AdminToOperator),
}


@dataclass
class Clock:
    """A clock that a test moves on."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Wire:
    """One connection to the Arbiter. PINGs are answered while something is awaited, unless ``mute``."""

    def __init__(self, stream: TlsStream, raw: SocketStream, codec: Codec[Any]) -> None:
        self.stream = stream
        self.raw = raw
        self.channel = Channel(stream, codec, prefix="t", limit=MAX_ARBITER_LINE_BYTES)
        self.mute = False

    async def line(self) -> Line[Any]:
        """The next line that is no heartbeat. Raises `ChannelError` at the end."""
        with anyio.fail_after(PATIENCE):
            while True:
                line = await self.channel.receive()
                if isinstance(line.message, m.Ping) and not self.mute:
                    await self.channel.send(m.Pong(ts=line.message.ts), in_reply_to=line.msg_id)
                elif not isinstance(line.message, m.Ping | m.Pong):
                    return line

    async def hear(self, kind: type[Kind]) -> Kind:
        """The next message, which must be of ``kind``."""
        message = (await self.line()).message
        assert isinstance(message, kind), f"heard {message!r}, expected {kind.__name__}"
        return message

    async def hears_nothing(self, seconds: float) -> bool:
        """Whether nothing but heartbeats comes for so long."""
        with anyio.move_on_after(seconds):
            await self.line()
            return False
        return True

    async def rest(self) -> list[Any]:
        """Everything that still comes, up to the end of the connection, which is then closed."""
        heard: list[Any] = []
        with contextlib.suppress(ChannelError):
            while True:
                heard.append((await self.line()).message)
        await self.cut()
        return heard

    async def say(self, message: m.Message) -> str:
        """Send a message; return its id."""
        return await self.channel.send(message)

    async def ask(self, message: m.Message) -> Any:
        """Send a message; return the reply, which must be the next thing that comes."""
        msg_id = await self.say(message)
        line = await self.line()
        assert line.in_reply_to == msg_id, f"{line.message!r} replies to {line.in_reply_to}"
        return line.message

    async def say_bytes(self, data: bytes) -> None:
        """Send what is perhaps no line at all."""
        await self.stream.send(data)

    async def close(self) -> None:
        """Close in good order."""
        await self.channel.aclose()

    async def cut(self) -> None:
        """Die: close the connection without a word."""
        await anyio.aclose_forcefully(self.raw)


async def connect(port: int | str, door: str, context: ssl.SSLContext, *, buffer: int | None = None) -> Wire:
    """Connect to an Arbiter's port or socket, the one of ``door``; ``buffer`` as for `Home.connect`."""
    raw: SocketStream
    raw = await (connect_unix(port) if isinstance(port, str) else anyio.connect_tcp(HOST, port))
    if buffer is not None:
        raw.extra(SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    stream = await TlsStream.handshake(raw, context, server_side=False, server_hostname="localhost")
    return Wire(stream, raw, TO_PEER[door])


class Guest:
    """A seat. ``name`` is its logical name; its certificate is its own unless it was given another's."""

    def __init__(self, home: Home, name: str, context: ssl.SSLContext) -> None:
        self.home = home
        self.name = name
        self.context = context
        self.control: Wire
        self.data: Wire
        self.granted: m.RegOk

    async def arrive(self) -> Wire:
        """Open the control connection."""
        self.control = await self.home.connect("control", self.context)
        return self.control

    async def register(self, **wishes: Any) -> m.RegOk:
        """Open the control connection, REG, and hear REG_OK."""
        await self.arrive()
        granted = await self.control.ask(m.Reg(name=self.name, **wishes))
        assert isinstance(granted, m.RegOk), granted
        self.granted = granted
        return granted

    async def bind(self) -> None:
        """Open the data connection, DATA_HELLO, and hear DATA_OK."""
        self.data = await self.home.connect("data", self.context)
        assert isinstance(await self.data.ask(self.hello()), m.DataOk)

    def hello(self) -> m.DataHello:
        """The DATA_HELLO that this seat is entitled to."""
        return m.DataHello(session_id=self.granted.session_id, data_token=self.granted.data_token)

    async def join(self, **wishes: Any) -> m.RegOk:
        """REG and DATA_HELLO: sit down."""
        wishes = {"meta": m.Meta(brand="test", role_label=f"role of {self.name}")} | wishes
        granted = await self.register(**wishes)
        await self.bind()
        return granted

    async def turn(self) -> m.Context:
        """Be given the floor: TURN_START and its CONTEXT; ACK."""
        start = await self.control.hear(m.TurnStart)
        context = await self.data.hear(m.Context)
        assert start.turn_id == context.turn_id
        await self.control.say(m.Ack(turn_id=start.turn_id))
        return context

    async def says(self, turn_id: int, text: str, usage: m.Usage | None = None) -> None:
        """SPEECH, TURN_END."""
        await self.data.say(m.Speech(turn_id=turn_id, text=text, usage=usage))
        await self.control.say(m.TurnEnd(turn_id=turn_id, speech=True))

    async def speaks(self, text: str) -> m.Context:
        """Have a turn (§6.1); return its CONTEXT."""
        context = await self.turn()
        await self.says(context.turn_id, text)
        return context

    async def close(self) -> None:
        """Close both connections in good order."""
        await self.control.close()
        await self.data.close()


@dataclass
class Home:
    """A house with its doors open.

    ``reports`` is what the doors observed; ``debate`` is for looking at, ``over`` is set when all is over.
    """

    folder: Path
    house: House
    debate: Debate
    ports: Mapping[str, int | str]
    authority: Authority
    reports: list[tuple[HandshakeOutcome, str]] = field(default_factory=list)
    over: anyio.Event = field(default_factory=anyio.Event)
    pki: Pki | None = None
    wires: list[Wire] = field(default_factory=list)
    holders: dict[str, ssl.SSLContext] = field(default_factory=dict)

    @property
    def reception(self) -> Reception:
        return self.house.reception

    @property
    def transcript(self) -> Path:
        return self.folder / "debate.jsonl"

    def context(self, holder: str, profile: Profile = "participant") -> ssl.SSLContext:
        """What ``holder`` connects with; its certificate is issued on first use."""
        if holder not in self.holders:
            issue = self.authority.issue if self.pki is None else self.pki.issue
            self.holders[holder] = client_context(issue(holder, profile=profile))
        return self.holders[holder]

    def guest(self, name: str, *, holder: str | None = None) -> Guest:
        """A seat that has yet to come."""
        return Guest(self, name, self.context(holder or name))

    async def joined(self, *names: str) -> list[Guest]:
        """Seats that sit."""
        guests = [self.guest(name) for name in names]
        for guest in guests:
            await guest.join(disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE)
        return guests

    async def operator(self) -> Wire:
        """An operator's connection."""
        return await self.connect("admin", self.context("operator", "operator"))

    async def connect(self, door: str, context: ssl.SSLContext, *, buffer: int | None = None) -> Wire:
        """Connect to a port; ``buffer`` bounds what the kernel takes for a reader who does not read."""
        wire = await connect(self.ports[door], door, context, buffer=buffer)
        self.wires.append(wire)
        return wire

    async def serves(self) -> bool:
        """Whether somebody new is served: a STATUS is asked for and answered."""
        operator = await self.operator()
        status = await operator.ask(m.StatusRequest())
        await operator.close()
        return isinstance(status, m.Status)

    async def outcome(self) -> m.DebateState | None:
        """Wait until everything is over; return what came of it."""
        with anyio.fail_after(2 * PATIENCE):
            await self.over.wait()
        return self.house.outcome

    def records(self) -> list[Stored]:
        """The record as it stands on disk; checked against its head, once it is closed."""
        return read_records(self.transcript, read_head(self.transcript) if self.over.is_set() else None)[0]

    async def empties(self) -> None:
        """Everybody dies, without a word; wait until the Arbiter holds nobody any more."""
        for wire in self.wires:
            await wire.cut()
        await until(lambda: not (self.reception.seats or self.reception.operators))

    def failures(self) -> list[str]:
        """Tracebacks of connections that a bug has ended."""
        return [detail for outcome, detail in self.reports if outcome is HandshakeOutcome.HANDLER_FAILED]


async def until(condition: Callable[[], Any]) -> None:
    """Wait until ``condition`` holds."""
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - what is looked at tells nobody when it changes
            await anyio.sleep(0.01)


def write_profiles(file: Path, profiles: Mapping[str, CapabilityProfile], doors: Doors) -> None:
    """Write what an Arbiter reads with ``--profiles``."""
    sections = {name: profile.model_dump(mode="json") for name, profile in profiles.items()}
    file.write_bytes(orjson.dumps(sections | {"doors": doors.model_dump(mode="json")}))


@contextlib.asynccontextmanager
async def house(
    folder: Path,
    council: Council,
    *,
    profiles: Mapping[str, CapabilityProfile] = DEFAULT_PROFILES,
    doors: Doors = DOORS,
    pki: Pki | None = None,
    disk: Disk | None = None,
    clock: Callable[[], float] = time.monotonic,
    wall_clock: Callable[[], float] = real_time,
    grace: float = 0.3,
    inbox: int = SIZE,
    buffer: int | None = None,
    measured: bool = False,
) -> AsyncIterator[Home]:
    """Hold ``council``'s debate in this process, on `TRANSPORT`, until the block ends.

    Where it is ``measured``, the port ``metrics`` is open too.
    With ``pki``, everybody's certificates are from there, and lists of revoked ones are where it puts them.
    No connection may have ended by a bug by then, unless the test has cleared ``reports``.
    """
    authority = Authority.create(folder / "certs")
    if pki is None:
        own = authority.issue("arbiter", profile="arbiter", dns=["localhost"], ips=[HOST])
    else:
        own = pki.own
    debate = Debate("debate-1", council, arbiter="sha256:aa")
    journal = Journal.create(
        folder / "debate.jsonl", signer=HeadSigner.load(own), clock=wall_clock, disk=disk
    )
    ends = Inbox(inbox)
    board = Board() if measured else None
    observer = NOBODY if board is None else board.tally
    write_profiles(folder / "profiles.yaml", profiles, doors)
    sources = Sources(own.cert.parent, folder / "profiles.yaml")
    current = Configuration.read(sources, wall_clock())

    async def tell(event: Event) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):
            await ends.post(event)

    reloader = Reloader(current, sources, tell, journal.sign_with, wall_clock, observer=observer)
    reception = Reception(
        ends.post,
        lambda from_seq: follow(journal, from_seq),
        profiles,
        reload=reloader,
        heartbeat=council.limits.heartbeat_seconds,
        clock=clock,
        wall_clock=wall_clock,
        observer=observer,
    )
    reception.obey(reloader)
    service = Service(debate, journal, reception, ends, clock, observer=observer)
    if board is not None:
        board.look_at(service, reception, journal, ends, reloader, clock=clock, wall_clock=wall_clock)
    held = House(service, reception, journal, reloader, board)
    closing = contextlib.AsyncExitStack()
    if TRANSPORT == "unix":
        listeners = await closing.enter_async_context(open_sockets(folder / "run"))
    else:
        listeners = {name: await bind(HOST, 0, setting=name) for name in TO_PEER}
    if board is not None:
        listeners = {**listeners, "metrics": await bind(HOST, 0, setting="metrics")}
    if buffer is not None:
        for listener in (each for some in listeners.values() for each in some):
            listener.extra(SocketAttribute.raw_socket).setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    ports = {name: _place(some[0]) for name, some in listeners.items()}
    home = Home(folder, held, debate, ports, authority, pki=pki)
    async with closing:
        closing.enter_context(ends)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_live, home, listeners, grace)
                try:
                    yield home
                finally:
                    # Before the Arbiter stops: it would wait a moment for each of them to close its end.
                    with anyio.CancelScope(shield=True):
                        for wire in home.wires:
                            await wire.cut()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True), contextlib.suppress(TranscriptError):
                await journal.close()
    assert home.failures() == []


async def _live(home: Home, listeners: Mapping[str, Sequence[SocketListener]], grace: float) -> None:
    """Hold the debate with the doors open, as `arbiter.main` does."""

    def observe(outcome: HandshakeOutcome, _: str, detail: str) -> None:
        home.reports.append((outcome, detail))
        porter(outcome, "", detail)

    board = home.house.board
    porter = _Porter(NOBODY if board is None else board.tally)
    async with anyio.create_task_group() as doors:
        if board is not None:
            doors.start_soon(board.serve, listeners["metrics"])
        for name in TO_PEER:
            some = listeners[name]
            door = Door(
                lambda: home.house.reloader.current.context,
                getattr(home.reception, name),
                observe,
                lambda: home.house.reloader.current.configured.doors,
            )
            doors.start_soon(door.serve, some)
        await home.house.hold(grace)
        doors.cancel_scope.cancel()
    home.over.set()
