"""Who may send what where (§4, §5.4, §14.3), as one table. What is not listed is denied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from arbiter.debate.effects import Channel
from consilium import messages
from consilium.errors import ErrorCode, PeerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from arbiter.admission import Rights
    from consilium.messages import Message

Role = Literal["participant", "operator"]

ALLOWED: Mapping[tuple[Role, Channel], frozenset[type[Message]]] = {
    ("participant", Channel.CONTROL): frozenset(
        {
            messages.Reg,
            messages.StateUpdate,
            messages.Unreg,
            messages.Ack,
            messages.TurnEnd,
            messages.TurnFailed,
            messages.StatusRequest,
            messages.Ping,
            messages.Pong,
        }
    ),
    ("participant", Channel.DATA): frozenset({messages.DataHello, messages.Speech, messages.SystemEvent}),
    ("operator", Channel.ADMIN): frozenset(
        {
            messages.StatusRequest,
            messages.Inject,
            messages.SetTopic,
            messages.SetPhase,
            messages.Kick,
            messages.ForceTurnEnd,
            messages.Next,
            messages.Pause,
            messages.Resume,
            messages.Terminate,
            messages.Reload,
            messages.Watch,
            messages.Ping,
            messages.Pong,
        }
    ),
}

FIRST: Mapping[Channel, frozenset[type[Message]]] = {
    Channel.CONTROL: frozenset({messages.Reg, messages.Ping, messages.Pong}),
    Channel.DATA: frozenset({messages.DataHello}),
}
"""What a connection may carry before it belongs to a registered session."""


def check_channel(rights: Rights, channel: Channel) -> None:
    """Refuse a certificate that has no business on ``channel``. Raises `PeerError` (POLICY_DENIED)."""
    if (rights.profile.role, channel) not in ALLOWED:
        raise PeerError(
            ErrorCode.POLICY_DENIED, f"a certificate of role {rights.profile.role} may not use this channel"
        )


def check_message(rights: Rights, channel: Channel, message: Message, *, registered: bool) -> None:
    """Refuse what this session may not send here, or not yet.

    Raises `PeerError`: POLICY_DENIED, NOT_REGISTERED, or INVALID_STATE for a second registration.
    """
    kind = type(message)
    if kind not in ALLOWED.get((rights.profile.role, channel), frozenset()):
        raise PeerError(ErrorCode.POLICY_DENIED, "this session may not send that here")
    if kind is messages.StatusRequest and not rights.profile.may_ask_status:
        raise PeerError(ErrorCode.POLICY_DENIED, "this certificate's profile may not ask for STATUS")
    first = FIRST.get(channel)
    if first is None:
        return
    if not registered and kind not in first:
        raise PeerError(ErrorCode.NOT_REGISTERED, "register first")
    if registered and kind in (messages.Reg, messages.DataHello):
        raise PeerError(ErrorCode.INVALID_STATE, "this connection has registered already")
