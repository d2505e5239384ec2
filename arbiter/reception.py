"""Where connections become sessions, and messages become events (§4, §5.4, §5.5).

1. Nothing here decides about the debate: it verifies who speaks, what that one may say here, and posts it.
2. A refusal is answered; one that shows a peer that cannot be talked to is also the end of its connection.
3. Whatever happens to one connection ends that connection, and no other.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from arbiter import admission, permissions, translate
from arbiter.debate import events
from arbiter.debate.effects import Channel as Kind
from arbiter.edge.limits import TokenBucket
from arbiter.session import WRITE_TIMEOUT, Outbox, Session
from arbiter.tokens import TokenLedger
from consilium import messages
from consilium.certificate import CertificateRefused, identify
from consilium.channel import Channel
from consilium.codec import Codec
from consilium.conversation import Beat, Heartbeat
from consilium.errors import ChannelBroken, ChannelError, ErrorCode, PeerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from anyio.abc import TaskGroup

    from arbiter.admission import Rights
    from arbiter.debate.events import Event
    from consilium.codec import Line
    from consilium.messages import Message
    from consilium.profile import CapabilityProfile
    from consilium.tls import TlsStream

FIRST_MESSAGE = 5.0
"""Seconds within which a new connection must say what it wants."""

GOODBYE = 5.0
"""Seconds for which the owner of the debate is given to take the news that a session ended."""

WATCH_TIMEOUT = 60.0
"""Seconds for which an operator's terminal may stand still before it is cut off."""

FATAL = frozenset(
    {
        ErrorCode.MALFORMED,
        ErrorCode.TOO_LARGE,
        ErrorCode.RATE_LIMITED,
        ErrorCode.PROTOCOL_VERSION_UNSUPPORTED,
        ErrorCode.TOKEN_REFUSED,
        ErrorCode.TIMEOUT,
    }
)
"""Refusals after which the connection is closed: there is nothing more to say to this peer."""

CODECS: Mapping[Kind, Codec[Any]] = {
    Kind.CONTROL: Codec(messages.ControlFromSeat),
    Kind.DATA: Codec(messages.DataFromSeat),
    Kind.ADMIN: Codec(messages.AdminFromOperator),
}


@dataclass(slots=True)
class Connection:
    """One authenticated connection, from its first message to its last."""

    kind: Kind
    rights: Rights
    channel: Channel[Any]
    outbox: Outbox
    bucket: TokenBucket
    tasks: TaskGroup
    registered: bool = False

    async def next(self, now: Callable[[], float]) -> Line[Any]:
        """Receive a message that may be sent here. Raises `PeerError`, `ChannelError`."""
        line = await self.channel.receive()
        with answering(line):
            if not self.bucket.take(now()):
                raise PeerError(ErrorCode.RATE_LIMITED, "too many messages")
            permissions.check_message(self.rights, self.kind, line.message, registered=self.registered)
        return line

    async def listen(self, now: Callable[[], float], take: Callable[[Line[Any]], Awaitable[None]]) -> None:
        """Hand each message to ``take``; answer what is refused.

        Ends by `ChannelError`, after a fatal refusal too.
        """
        while True:
            try:
                line = await self.next(now)
                with answering(line):
                    await take(line)
            except PeerError as refusal:
                self.refuse(refusal)
                if refusal.code in FATAL:
                    raise ChannelBroken(f"the peer broke the protocol: {refusal}") from refusal

    def refuse(self, refusal: PeerError) -> None:
        """Answer with an ERROR."""
        self.outbox.put(messages.Error(code=refusal.code, message=refusal.message), refusal.in_reply_to)

    def answer_ping(self, line: Line[Any]) -> bool:
        """Answer a PING; say whether the message was one of the heartbeat's."""
        if isinstance(line.message, messages.Ping):
            self.outbox.put(messages.Pong(ts=line.message.ts), line.msg_id)
        return isinstance(line.message, messages.Ping | messages.Pong)


@contextmanager
def answering(line: Line[Any]) -> Iterator[None]:
    """Let a refusal name the message that it answers."""
    try:
        yield
    except PeerError as refusal:
        refusal.in_reply_to = line.msg_id
        raise


class Reception:
    """Holds the sessions, and serves each connection of the three listeners."""

    def __init__(
        self,
        post: Callable[[Event], Awaitable[None]],
        follow: Callable[[int], AsyncIterator[dict[str, Any]]],
        profiles: Mapping[str, CapabilityProfile],
        *,
        heartbeat: float,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        """``post`` puts an event into the owner's inbox; ``follow`` yields the record from a seq on.

        ``clock`` is monotonic, ``wall_clock`` counts from the epoch; both in seconds, as ``heartbeat``.
        """
        self._post = post
        self._follow = follow
        self._profiles = profiles
        self._interval = heartbeat
        self._clock = clock
        self._wall_clock = wall_clock
        self._tokens = TokenLedger()
        self._operators: dict[str, Outbox] = {}
        self._someone_left = anyio.Event()
        self.sessions: dict[str, Session] = {}

    # --- what the owner of the debate calls -----------------------------------------------------------

    def deliver(self, session: str, kind: Kind, message: Message, in_reply_to: str | None) -> None:
        """Queue a message. A reader that has let its queue fill up has failed, and is cut (§7.3)."""
        if kind is Kind.ADMIN:
            operator = self._operators.get(session)
            if operator is not None and not operator.put(message, in_reply_to):
                operator.finish()
            return
        held = self.sessions.get(session)
        if held is None:
            return
        outbox = held.control if kind is Kind.CONTROL else held.data
        if outbox is not None and not outbox.put(message, in_reply_to):
            held.end("slow_reader")

    def end(self, session: str, reason: str) -> None:
        """Close a session's connections, after what is queued for them."""
        self._tokens.void(session)
        held = self.sessions.get(session)
        if held is not None:
            held.end(reason)

    async def farewell(self, grace: float) -> None:
        """Give everybody ``grace`` seconds to hear the last message and leave; then close the rest."""
        with anyio.move_on_after(grace):
            await self._until_left(self.sessions)
        for held in list(self.sessions.values()):
            held.end("debate_over")
        for outbox in list(self._operators.values()):
            outbox.finish()
        with anyio.move_on_after(grace):
            await self._until_left(self.sessions)
            await self._until_left(self._operators)

    async def _until_left(self, those: Mapping[str, Any]) -> None:
        while those:
            self._someone_left = anyio.Event()
            await self._someone_left.wait()

    async def pulse(self) -> None:
        """Beat every session's heart (§5.4), and end those whose certificate has run out."""
        while True:
            now = self._clock()
            for held in list(self.sessions.values()):
                if held.reason is None:
                    self._look_at(held, now)
            due = min((held.heartbeat.next_at for held in self.sessions.values()), default=now + 1)
            await anyio.sleep(min(max(due - self._clock(), 0.02), self._interval, 1.0))

    def _look_at(self, held: Session, now: float) -> None:
        if held.rights.identity.not_after <= self._wall_clock():
            held.end("certificate_expired")
            return
        beat = held.heartbeat.tick(now)
        if beat is Beat.LOST:
            held.end("heartbeat_missed")
        elif beat is Beat.PING:
            self.deliver(
                held.session_id, Kind.CONTROL, messages.Ping(ts=int(self._wall_clock() * 1000)), None
            )

    # --- what the listeners call ----------------------------------------------------------------------

    async def control(self, stream: TlsStream, peer: str) -> None:  # noqa: ARG002 - the listeners' signature
        """Serve one control connection to its end."""
        await self._serve(stream, Kind.CONTROL, self._converse_control)

    async def data(self, stream: TlsStream, peer: str) -> None:  # noqa: ARG002
        """Serve one data connection to its end."""
        await self._serve(stream, Kind.DATA, self._converse_data)

    async def admin(self, stream: TlsStream, peer: str) -> None:  # noqa: ARG002
        """Serve one operator's connection to its end."""
        await self._serve(stream, Kind.ADMIN, self._converse_admin)

    async def _serve(
        self, stream: TlsStream, kind: Kind, converse: Callable[[Connection], Awaitable[None]]
    ) -> None:
        try:
            rights = self._entitled(stream, kind)
        except PeerError as refusal:
            await _turn_away(stream, kind, refusal)
            return
        profile = rights.profile
        channel: Channel[Any] = Channel(stream, CODECS[kind], prefix="a", limit=profile.max_message_bytes)
        bucket = TokenBucket(profile.messages_per_second, profile.burst)
        outbox = Outbox(channel)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_drain, outbox, tasks.cancel_scope)
                connection = Connection(kind, rights, channel, outbox, bucket, tasks)
                try:
                    await converse(connection)
                except PeerError as refusal:
                    connection.refuse(refusal)
                except ChannelError:
                    pass  # It is gone; `converse` has told the debate why.
                outbox.finish()
        finally:
            self._someone_left.set()
            await channel.aclose()

    def _entitled(self, stream: TlsStream, kind: Kind) -> Rights:
        assert stream.peer_der is not None, "the listeners require a certificate"
        try:
            identity = identify(stream.peer_der)
        except CertificateRefused as refusal:
            raise PeerError(ErrorCode.POLICY_DENIED, f"certificate refused: {refusal}") from None
        rights = admission.rights_of(identity, self._profiles)
        permissions.check_channel(rights, kind)
        return rights

    async def _first(self, connection: Connection) -> Line[Any]:
        with anyio.move_on_after(FIRST_MESSAGE):
            return await connection.next(self._clock)
        raise PeerError(ErrorCode.TIMEOUT, f"nothing was said within {FIRST_MESSAGE:.0f} s")

    async def _converse_control(self, connection: Connection) -> None:
        line = await self._first(connection)
        while connection.answer_ping(line):
            line = await self._first(connection)
        with answering(line):
            participant_id, granted = admission.admit(line.message, connection.rights)
        held = self._seat(connection, line.message, participant_id)
        reason = "connection_lost"
        try:
            await self._post(self._registration(held, line, granted))

            async def take(line: Line[Any]) -> None:
                held.heartbeat.heard(self._clock())
                if not connection.answer_ping(line):
                    event = translate.from_control(held.session_id, held.name, held.rights, line)
                    await self._post(event)

            await connection.listen(self._clock, take)
        except ChannelError as ended:
            reason = str(ended)
            raise
        finally:
            held.end(reason)
            self._tokens.void(held.session_id)
            del self.sessions[held.session_id]
            with anyio.move_on_after(GOODBYE, shield=True):
                await self._post(events.SessionLost(held.session_id, held.reason or reason))

    def _seat(self, connection: Connection, reg: messages.Reg, participant_id: str) -> Session:
        held = Session(
            session_id=secrets.token_hex(16),
            participant_id=participant_id,
            name=reg.name,
            rights=connection.rights,
            control=connection.outbox,
            heartbeat=Heartbeat(self._interval, self._clock()),
        )
        connection.registered = True
        self.sessions[held.session_id] = held
        return held

    def _registration(self, held: Session, line: Line[Any], granted: admission.Granted) -> Event:
        token = secrets.token_urlsafe(32)
        self._tokens.issue(token, held.session_id, held.rights.identity.fingerprint, self._clock())
        return events.SeatRegistered(
            session=held.session_id,
            msg_id=line.msg_id,
            participant_id=held.participant_id,
            name=held.name,
            required=bool(granted.required),
            disconnect_policy=granted.disconnect_policy or messages.DisconnectPolicy.DROP,
            meta=line.message.meta,
            data_token=token,
        )

    async def _converse_data(self, connection: Connection) -> None:
        line = await self._first(connection)
        hello: messages.DataHello = line.message
        presented = connection.rights.identity.fingerprint
        with answering(line):
            self._tokens.strike(hello.data_token, hello.session_id, presented, self._clock())
        held = self.sessions[hello.session_id]
        connection.registered = True
        held.data = connection.outbox

        async def take(line: Line[Any]) -> None:
            held.heartbeat.heard(self._clock())
            await self._post(translate.from_data(held.session_id, held.participant_id, line))

        try:
            await self._post(events.DataBound(held.session_id, line.msg_id))
            await connection.listen(self._clock, take)
        except ChannelError as ended:
            held.end(f"data connection: {ended}")
            raise
        finally:
            held.end("data connection lost")

    async def _converse_admin(self, connection: Connection) -> None:
        session = f"operator-{secrets.token_hex(8)}"
        connection.registered = True
        self._operators[session] = connection.outbox

        async def take(line: Line[Any]) -> None:
            if connection.answer_ping(line):
                return
            if isinstance(line.message, messages.Watch):
                connection.outbox.put(messages.AdminOk(operation="WATCH"), line.msg_id)
                connection.tasks.start_soon(self._watch, connection, line.message.from_seq, line.msg_id)
            else:
                await self._post(translate.from_admin(session, line))

        try:
            await connection.listen(self._clock, take)
        finally:
            del self._operators[session]

    async def _watch(self, connection: Connection, from_seq: int, in_reply_to: str) -> None:
        """Send the record as it grows. The reader sets the pace: nothing piles up here."""
        try:
            async for record in self._follow(from_seq):
                with anyio.fail_after(WATCH_TIMEOUT):
                    await connection.channel.send(messages.Record(record=record), in_reply_to=in_reply_to)
        except (ChannelError, TimeoutError):
            connection.outbox.finish()


async def _turn_away(stream: TlsStream, kind: Kind, refusal: PeerError) -> None:
    """Tell a peer that has no business here why, and part."""
    channel: Channel[Any] = Channel(stream, CODECS[kind], prefix="a")
    with anyio.move_on_after(WRITE_TIMEOUT):
        await channel.send(messages.Error(code=refusal.code, message=refusal.message))
    await channel.aclose()


async def _drain(outbox: Outbox, scope: anyio.CancelScope) -> None:
    """Send what is queued until it is finished; the connection ends with its writer."""
    try:
        await outbox.drain()
    except ChannelError:
        pass  # The reader of this connection meets the same end, and tells it.
    finally:
        scope.cancel()
