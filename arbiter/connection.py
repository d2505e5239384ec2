"""One authenticated connection: what it may carry, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arbiter import permissions
from arbiter.debate.effects import Channel as Kind
from arbiter.observe import NOBODY
from arbiter.session import CUT
from consilium import messages
from consilium.bucket import TokenBucket
from consilium.codec import Codec
from consilium.errors import ChannelBroken, ChannelError, ErrorCode, PeerError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from anyio.abc import TaskGroup

    from arbiter.admission import Rights
    from arbiter.observe import Observer
    from arbiter.session import Outbox
    from consilium.channel import Channel
    from consilium.codec import Line

CODECS: Mapping[Kind, Codec[Any]] = {
    Kind.CONTROL: Codec(messages.ControlFromSeat),
    Kind.DATA: Codec(messages.DataFromSeat),
    Kind.ADMIN: Codec(messages.AdminFromOperator),
}


@dataclass(slots=True)
class Connection:
    """One authenticated connection, from its first message to its last.

    ``barred`` is why nothing that still comes is heard, once that is so.
    """

    kind: Kind
    rights: Rights
    channel: Channel[Any]
    outbox: Outbox
    bucket: TokenBucket
    tasks: TaskGroup
    observer: Observer = NOBODY
    registered: bool = False
    unreadable: bool = False
    barred: str | None = None
    undeliverable: str | None = None
    alone: bool = False
    """Whether the writer is all that is left: a cancellation is dear (3 % of a handshake), and moot."""

    async def next(self, now: Callable[[], float]) -> Line[Any]:
        """Receive a message that may be sent here. Raises `PeerError`, `ChannelError`."""
        try:
            line = await self.channel.receive()
        except PeerError:
            self.unreadable = True
            raise
        if self.barred is not None:
            raise ChannelBroken(self.barred)
        with answering(line):
            if not self.bucket.take(now()):
                self.observer.rate_limited(self.kind)
                raise PeerError(ErrorCode.RATE_LIMITED, "too many messages")
            permissions.check_message(self.rights, self.kind, line.message, registered=self.registered)
        return line

    async def listen(self, now: Callable[[], float], take: Callable[[Line[Any]], Awaitable[None]]) -> None:
        """Hand each message to ``take``; answer what is refused.

        Ends by `ChannelError`: also after a line that cannot be read, or one too many, for there is nothing
        more to say to such a peer.
        """
        while True:
            try:
                line = await self.next(now)
                with answering(line):
                    await take(line)
            except PeerError as refusal:
                self.refuse(refusal)
                if self.unreadable or refusal.code is ErrorCode.RATE_LIMITED:
                    broke = f"the peer broke the protocol: {refusal.code}: {refusal.message}"
                    raise ChannelBroken(broke) from refusal

    def adopt(self, rights: Rights) -> None:
        """Go by other rights from now on: the next message, and the line that is being received."""
        if rights.profile == self.rights.profile:
            return
        self.rights = rights
        self.channel.limit(rights.profile.max_message_bytes)
        self.bucket = TokenBucket(rights.profile.messages_per_second, rights.profile.burst)

    def bar(self, refusal: PeerError) -> None:
        """Hear nothing more, say why, and part: to one that is nobody's yet; a session has been told."""
        self.barred = refusal.message
        self.refuse(refusal)
        self.outbox.finish(CUT)

    def refuse(self, refusal: PeerError) -> None:
        """Answer with an ERROR."""
        self.outbox.put(to_error(refusal), refusal.in_reply_to)

    async def write(self) -> None:
        """Send what is queued until the outbox is finished; the connection ends with its writer."""
        try:
            await self.outbox.drain()
        except ChannelError as failure:
            self.undeliverable = str(failure)
        finally:
            if not self.alone:
                self.tasks.cancel_scope.cancel()

    def answer_ping(self, line: Line[Any]) -> bool:
        """Answer a PING; say whether the message was one of the heartbeat's."""
        if isinstance(line.message, messages.Ping):
            self.outbox.put(messages.Pong(ts=line.message.ts), line.msg_id)
        return isinstance(line.message, messages.Ping | messages.Pong)


class answering:  # noqa: N801 - it is read as a word: "with answering(line)"
    """Let a refusal name the message that it answers."""

    __slots__ = ("_line",)

    def __init__(self, line: Line[Any]) -> None:
        self._line = line

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, refusal: BaseException | None, _trace: object) -> None:
        if isinstance(refusal, PeerError):
            refusal.in_reply_to = self._line.msg_id


def to_error(refusal: PeerError) -> messages.Error:
    """What the peer is told of a refusal."""
    return messages.Error(code=refusal.code, message=messages.as_reason(refusal.message))
