"""Where connections become sessions, and messages become events (§4, §5.4, §5.5).

1. Nothing here decides about the debate: it verifies who speaks, what that one may say here, and posts it.
2. A refusal is answered; one that shows a peer that cannot be talked to is also the end of its connection.
3. Whatever happens to one connection ends that connection, and no other.
"""

from __future__ import annotations

import logging
import secrets
from collections import Counter
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

import anyio

from arbiter import admission, permissions, translate
from arbiter.changes import Configured, Revoked, rights_now
from arbiter.connection import CODECS, Connection, answering, to_error
from arbiter.debate import events
from arbiter.debate.effects import Channel as Kind
from arbiter.observe import NOBODY
from arbiter.session import CUT, PARTING, Outbox, Registration, Session
from arbiter.tokens import LIFETIME, TokenLedger
from consilium import messages
from consilium.bucket import TokenBucket
from consilium.certificate import CertificateRefused, identify, link
from consilium.channel import Channel
from consilium.conversation import Beat, Heartbeat
from consilium.errors import ChannelClosed, ChannelError, ErrorCode, PeerError, TranscriptError, UserError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable, Mapping

    from arbiter.admission import Rights
    from arbiter.debate.events import Event
    from arbiter.observe import Observer
    from arbiter.reload import Reloader
    from consilium.codec import Line
    from consilium.messages import Message
    from consilium.profile import CapabilityProfile
    from consilium.tls import TlsStream

WATCH_TIMEOUT = 60.0
"""Seconds for which an operator's terminal may stand still before it is cut off."""

LOG_RATE, LOG_BURST = 5.0, 20
"""Log lines about peers that were refused, a second and at once: nobody fills a disk by being refused."""

log = logging.getLogger("arbiter")


class Reception:
    """Holds the sessions, and serves each connection of the three listeners."""

    def __init__(
        self,
        post: Callable[[Event], Awaitable[None]],
        follow: Callable[[int], AsyncGenerator[dict[str, Any], None]],
        profiles: Mapping[str, CapabilityProfile],
        *,
        reload: Callable[[str, str], Awaitable[None]],
        heartbeat: float,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
        observer: Observer = NOBODY,
    ) -> None:
        """``post`` puts an event into the owner's inbox; once the owner is gone, `anyio.BrokenResourceError`.

        ``follow`` yields the record from a seq on until it is closed, and may raise `TranscriptError`.
        ``reload`` is called with session and message id when an operator asks for it; raises `UserError`.
        ``clock`` is monotonic, ``wall_clock`` counts from the epoch; both in seconds, as ``heartbeat``.
        """
        self._post = post
        self._follow = follow
        self._configured = Configured(b"", b"", profiles)
        self._warnings: Callable[[], Iterable[str]] = tuple
        self._reload = reload
        self._interval = heartbeat
        self._clock = clock
        self._wall_clock = wall_clock
        self._observer = observer
        self._tokens = TokenLedger()
        self._log_bucket = TokenBucket(LOG_RATE, LOG_BURST)
        self._something_ended = anyio.Event()
        self.seats: dict[str, Registration] = {}
        self.operators: dict[str, Session] = {}
        self._connections: dict[Outbox, Connection] = {}
        self._crowd: Counter[bytes] = Counter()  # connections by certificate
        self._names: dict[bytes, list[str]] = {}  # of seats, by certificate

    @property
    def connections(self) -> Collection[Connection]:
        """Everything that is connected, whether or not it has said whose it is."""
        return self._connections.values()

    # --- what the owner of the debate calls -----------------------------------------------------------

    def deliver(self, session: str, kind: Kind, message: Message, in_reply_to: str | None) -> None:
        """Queue a message. A reader that has let its queue fill up has failed, and is cut (§7.3)."""
        if kind is Kind.ADMIN and isinstance(message, messages.Status):
            more = tuple(messages.as_reason(warning) for warning in self._warnings())
            message = message.model_copy(update={"warnings": message.warnings + more})
        held = self.seats.get(session) or self.operators.get(session)
        outbox = None if held is None else held.outboxes.get(kind)
        if held is not None and outbox is not None and not outbox.put(message, in_reply_to):
            held.end("slow_reader")

    def broadcast(self, message: Message) -> None:
        """Queue a message for every seat."""
        for session in self.seats:
            self.deliver(session, Kind.CONTROL, message, None)

    def end(self, session: str, reason: str) -> None:
        """Close a session's connections, after what is queued for them."""
        self._tokens.void(session)
        held = self.seats.get(session)
        if held is not None:
            held.end(reason)

    def obey(self, reloader: Reloader) -> None:
        """Go by what ``reloader`` holds, now and whenever that is another."""
        reloader.adopt = self.adopt
        reloader.authorities = self.authorities
        self._warnings = reloader.warnings
        self.adopt(reloader.current.configured)

    def authorities(self) -> set[bytes]:
        """The DER of every authority that has signed who is here."""
        chains = (connection.channel.peer_chain for connection in self._connections.values())
        return {above for chain in chains for above in chain[1:]}

    def adopt(self, configured: Configured) -> None:
        """Go by another configuration: end the sessions of whom it does not admit, limit the rest anew."""
        self._configured = configured
        for held in self._everybody():
            (kind, *_) = held.outboxes
            try:
                name = held.name if isinstance(held, Registration) else None
                held.rights = rights_now(held.rights, kind, name, configured)
            except PeerError as refusal:
                self._tokens.void(held.session_id)
                self.deliver(held.session_id, kind, to_error(refusal), None)
                if isinstance(refusal, Revoked):
                    held.end("certificate_revoked", CUT)
                else:
                    held.end(f"no longer admitted: {refusal.message}")
        for connection in self._connections.values():
            try:
                connection.adopt(rights_now(connection.rights, connection.kind, None, configured))
            except PeerError as refusal:
                connection.bar(refusal)

    async def farewell(self, grace: float) -> None:
        """Give everybody ``grace`` seconds to hear the last message and leave; then close the rest.

        An operator does not leave: it has heard everything when its watch has.
        """
        with anyio.move_on_after(grace):
            await self._until(lambda: not self.seats and not any(o.watches for o in self.operators.values()))
        for held in self._everybody():
            held.end("debate_over")
        with anyio.move_on_after(grace):
            await self._until(lambda: not self.seats and not self.operators)

    async def _until(self, quiet: Callable[[], bool]) -> None:
        while not quiet():
            self._something_ended = anyio.Event()
            await self._something_ended.wait()

    def _everybody(self) -> list[Session]:
        return [*self.seats.values(), *self.operators.values()]

    async def pulse(self) -> None:
        """Beat every session's heart (§5.4), and end those whose time has run out."""
        while True:
            now = self._clock()
            for held in self._everybody():
                if held.reason is None:
                    self._look_at(held, now)
            due = min((held.heartbeat.next_at for held in self._everybody()), default=now + 1)
            await anyio.sleep(min(max(due - self._clock(), 0.02), self._interval, 1.0))

    def _look_at(self, held: Session, now: float) -> None:
        (kind, *_) = held.outboxes
        if held.rights.identity.not_after <= self._wall_clock():
            expired = PeerError(ErrorCode.CERTIFICATE_EXPIRED, "the certificate of this session has expired")
            self.deliver(held.session_id, kind, to_error(expired), None)
            held.end("certificate_expired")
        elif isinstance(held, Registration) and held.bind_by <= now and Kind.DATA not in held.outboxes:
            missing = PeerError(ErrorCode.TIMEOUT, f"no data connection within {LIFETIME:g} s of REG")
            self.deliver(held.session_id, kind, to_error(missing), None)
            held.end("data_connection_missing")
        elif (beat := held.heartbeat.tick(now)) is Beat.LOST:
            held.end("heartbeat_missed")
        elif beat is Beat.PING:
            ping = messages.Ping(ts=int(self._wall_clock() * 1000))
            held.pinged = ping.ts, now
            self.deliver(held.session_id, kind, ping, None)

    # --- what the listeners call ----------------------------------------------------------------------

    async def control(self, stream: TlsStream, peer: str) -> None:
        """Serve one control connection to its end."""
        await self._serve(stream, peer, Kind.CONTROL, self._converse_control)

    async def data(self, stream: TlsStream, peer: str) -> None:
        """Serve one data connection to its end."""
        await self._serve(stream, peer, Kind.DATA, self._converse_data)

    async def admin(self, stream: TlsStream, peer: str) -> None:
        """Serve one operator's connection to its end."""
        await self._serve(stream, peer, Kind.ADMIN, self._converse_admin)

    async def _serve(
        self, stream: TlsStream, peer: str, kind: Kind, converse: Callable[[Connection], Awaitable[None]]
    ) -> None:
        try:
            rights = self._entitled(stream, kind)
        except PeerError as refusal:
            self._note(peer, kind, refusal)
            self._observer.refused(refusal.code)
            await _turn_away(stream, kind, refusal)
            return
        profile, doors = rights.profile, self._configured.doors
        channel: Channel[Any] = Channel(stream, CODECS[kind], prefix="a", limit=profile.max_message_bytes)
        bucket = TokenBucket(profile.messages_per_second, profile.burst)
        patience = WATCH_TIMEOUT if kind is Kind.ADMIN else doors.write_seconds
        outbox = Outbox(channel, patience, self._observer)
        holder = rights.identity.fingerprint
        self._crowd[holder] += 1
        connection = None
        try:
            async with anyio.create_task_group() as tasks:
                connection = Connection(kind, rights, channel, outbox, bucket, tasks, self._observer)
                self._connections[outbox] = connection
                tasks.start_soon(connection.write)
                try:
                    await converse(connection)
                except PeerError as refusal:
                    self._note(peer, kind, refusal)
                    connection.refuse(refusal)
                except ChannelError as ended:  # `converse` has told the debate why.
                    if isinstance(ended.__cause__, PeerError):
                        self._note(peer, kind, ended.__cause__)
                outbox.finish()
                connection.alone = kind is not Kind.ADMIN  # on which a watch may go on
        finally:
            self._connections.pop(outbox, None)
            self._something_ended.set()
            self._crowd[holder] -= 1
            if not self._crowd[holder]:
                del self._crowd[holder]
            await channel.aclose(None if connection is None or connection.barred is None else CUT)

    def _note(self, peer: str, kind: Kind, refusal: PeerError) -> None:
        """Log a refusal that ends a connection, as far as the log can take it."""
        if self._log_bucket.take(self._clock()):
            log.warning("%s, %s channel: refused, and closed: %s", peer, kind, refusal)

    async def _tell(self, event: Event) -> None:
        """Post an event. Once the owner is gone, nobody needs to know."""
        with suppress(anyio.BrokenResourceError):
            await self._post(event)

    def _entitled(self, stream: TlsStream, kind: Kind) -> Rights:
        assert stream.peer_der is not None, "the listeners require a certificate"
        try:
            identity = identify(stream.peer_der)
        except CertificateRefused as refusal:
            raise PeerError(ErrorCode.POLICY_DENIED, f"certificate refused: {refusal}") from None
        # The anchor itself is on no list: whoever trusts it has it in ca.pem.
        links = tuple(link(der) for der in stream.peer_chain[:-1])
        if self._configured.revocations.revokes(links):  # since the handshake, which would have told
            raise Revoked
        rights = admission.rights_of(identity, self._configured.profiles, links)
        permissions.check_channel(rights, kind)
        admission.check_crowd(rights, self._crowd[identity.fingerprint])
        return rights

    async def _first(self, connection: Connection) -> Line[Any]:
        """The message that says whose connection this is: REG, after heartbeats perhaps, or DATA_HELLO."""
        patience = self._configured.doors.first_message_seconds
        with anyio.move_on_after(patience):
            while connection.answer_ping(line := await connection.next(self._clock)):
                pass
            return line
        raise PeerError(ErrorCode.TIMEOUT, f"this connection is still nobody's after {patience:g} s")

    async def _converse_control(self, connection: Connection) -> None:
        line = await self._first(connection)
        with answering(line):
            names = self._names.get(connection.rights.identity.fingerprint, ())
            participant_id, granted = admission.admit(line.message, connection.rights, names)
        held = self._seat(connection, line.message, participant_id)
        leaves = False

        async def take(line: Line[Any]) -> None:
            nonlocal leaves
            self._heard(held, line)
            leaves = leaves or isinstance(line.message, messages.Unreg)
            if not connection.answer_ping(line):
                await self._tell(translate.from_control(held.session_id, held.name, held.rights, line))

        reason = "connection_lost"
        try:
            await self._tell(self._registration(held, line, granted))
            await connection.listen(self._clock, take)
        except ChannelClosed as ended:
            reason = str(ended)
            if leaves and Kind.DATA in held.outboxes:
                # It closes both, and its SPEECH may still be on the way on the other.
                with anyio.move_on_after(PARTING):
                    await held.data_over.wait()
            raise
        except ChannelError as ended:
            reason = str(ended)
            raise
        finally:
            held.end(connection.undeliverable or reason)
            held.over.set()
            self._tokens.void(held.session_id)
            del self.seats[held.session_id]
            self._observer.seat_gone(held.participant_id, held.heartbeat.heard_at)
            self._forget(held)
            # Whatever the hurry, the debate must hear of it: it would wait for this seat for ever.
            with anyio.CancelScope(shield=True):
                await self._tell(events.SessionLost(held.session_id, held.reason or reason))

    def _seat(self, connection: Connection, reg: messages.Reg, participant_id: str) -> Registration:
        now = self._clock()
        held = Registration(
            session_id=secrets.token_hex(16),
            rights=connection.rights,
            heartbeat=self._heartbeat(now),
            outboxes={Kind.CONTROL: connection.outbox},
            participant_id=participant_id,
            name=reg.name,
            bind_by=now + LIFETIME,
        )
        connection.registered = True
        self.seats[held.session_id] = held
        self._names.setdefault(held.rights.identity.fingerprint, []).append(held.name)
        self._observer.session_opened(held.rights.profile.role)
        return held

    def _forget(self, held: Registration) -> None:
        names = self._names[held.rights.identity.fingerprint]
        names.remove(held.name)
        if not names:
            del self._names[held.rights.identity.fingerprint]

    def _heartbeat(self, now: float) -> Heartbeat:
        return Heartbeat(self._interval, now, self._configured.doors.silent_intervals)

    def _heard(self, held: Registration, line: Line[Any]) -> None:
        """Note a sign of life, and how long it took if it is the PONG that is awaited."""
        now = self._clock()
        held.heartbeat.heard(now)
        if held.pinged is not None and isinstance(line.message, messages.Pong):
            ts, queued = held.pinged
            if line.message.ts == ts:
                held.pinged = None
                self._observer.heartbeat_returned(held.participant_id, now - queued)

    def _registration(self, held: Registration, line: Line[Any], granted: admission.Granted) -> Event:
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
        held = self.seats[hello.session_id]  # A token is void before its session is gone.
        held.outboxes[Kind.DATA] = connection.outbox
        connection.registered = True

        async def take(line: Line[Any]) -> None:
            held.heartbeat.heard(self._clock())
            await self._tell(translate.from_data(held.session_id, held.participant_id, line))

        reason = "connection_lost"
        try:
            await self._tell(events.DataBound(held.session_id, line.msg_id))
            await connection.listen(self._clock, take)
        except ChannelClosed as ended:
            reason = str(ended)
            held.data_over.set()
            # A seat that leaves closes both, and its UNREG may still be on the way on the other.
            with anyio.move_on_after(PARTING):
                await held.over.wait()
            raise
        except ChannelError as ended:
            reason = str(ended)
            raise
        finally:
            held.data_over.set()
            held.end(f"data connection: {connection.undeliverable or reason}")

    async def _converse_admin(self, connection: Connection) -> None:
        held = Session(
            session_id=f"operator-{secrets.token_hex(8)}",
            rights=connection.rights,
            heartbeat=self._heartbeat(self._clock()),
            outboxes={Kind.ADMIN: connection.outbox},
        )
        self.operators[held.session_id] = held
        self._observer.session_opened(held.rights.profile.role)

        async def take(line: Line[Any]) -> None:
            held.heartbeat.heard(self._clock())
            if connection.answer_ping(line):
                return
            if isinstance(line.message, messages.Reload):
                await self._reload_for(held, line)
            elif not isinstance(line.message, messages.Watch):
                await self._tell(translate.from_admin(held.session_id, line))
            elif held.watches:
                raise PeerError(ErrorCode.INVALID_STATE, "this connection watches already")
            else:
                held.watches = True
                connection.tasks.start_soon(self._watch, connection, held, line)

        try:
            await connection.listen(self._clock, take)
        finally:
            held.over.set()
            del self.operators[held.session_id]

    async def _reload_for(self, held: Session, line: Line[Any]) -> None:
        """Reload; the debate answers once it is on the record. Raises `PeerError` (INVALID_STATE)."""
        try:
            await self._reload(held.session_id, line.msg_id)
        except UserError as error:
            told = f"nothing is reloaded: {error.message}"
            raise PeerError(ErrorCode.INVALID_STATE, messages.as_reason(told), detail=error.hint) from error

    async def _watch(self, connection: Connection, held: Session, line: Line[Any]) -> None:
        """Send the record as it grows. The reader sets the pace: nothing piles up here."""

        async def send(message: Message) -> None:
            with anyio.fail_after(WATCH_TIMEOUT):
                await connection.channel.send(message, in_reply_to=line.msg_id)

        try:
            await send(messages.AdminOk(operation="WATCH"))
            async with aclosing(self._follow(line.message.from_seq)) as records:
                async for record in records:
                    await send(messages.Record(record=record))
        except TranscriptError as failure:
            refusal = PeerError(ErrorCode.INVALID_STATE, str(failure), in_reply_to=line.msg_id)
            connection.refuse(refusal)
        except (ChannelError, TimeoutError):
            connection.outbox.finish()
        finally:
            held.watches = False
            self._something_ended.set()


async def _turn_away(stream: TlsStream, kind: Kind, refusal: PeerError) -> None:
    """Tell a peer that has no business here why, and part."""
    channel: Channel[Any] = Channel(stream, CODECS[kind], prefix="a")
    with suppress(ChannelError), anyio.move_on_after(PARTING):
        await channel.send(to_error(refusal))
    await channel.aclose()
