"""Who may send what where: the whole product, role by channel by message by standing; default deny."""

from __future__ import annotations

import pytest
from rights import rights

from arbiter import permissions
from arbiter.debate.effects import Channel
from arbiter.permissions import Role
from consilium import messages
from consilium.codec import wire_type
from consilium.errors import ErrorCode, PeerError
from consilium.messages import Message

# The table of docs/protocol.md once more, in its own words: what is granted is said twice, by two people.
MAY_SEND = {
    ("participant", "control"): "REG STATE_UPDATE UNREG ACK TURN_END TURN_FAILED STATUS PING PONG",
    ("participant", "data"): "DATA_HELLO SPEECH SYSTEM_EVENT",
    ("operator", "admin"): (
        "STATUS INJECT SET_TOPIC SET_PHASE KICK FORCE_TURN_END NEXT PAUSE RESUME TERMINATE RELOAD WATCH "
        "PING PONG"
    ),
}
FIRST = {"control": {"REG", "PING", "PONG"}, "data": {"DATA_HELLO"}}
"""What a connection that is nobody's yet may carry."""
AT_MOST_ONCE = {"REG", "DATA_HELLO"}

CLASSES = sorted(
    (
        model
        for model in vars(messages).values()
        if isinstance(model, type) and issubclass(model, Message) and "type" in model.model_fields
    ),
    key=lambda model: model.__name__,
)
ROLES: tuple[Role, ...] = ("participant", "operator")
REPORTS = {messages.Status}
"""Shares its wire type with the request; only the class tells which way it travels."""


def verdict(role: Role, channel: Channel, model: type[Message], registered: bool) -> ErrorCode | None:
    try:
        permissions.check_message(rights(role), channel, model.model_construct(), registered=registered)
    except PeerError as refusal:
        return refusal.code
    return None


def expected(role: Role, channel: Channel, model: type[Message], registered: bool) -> ErrorCode | None:
    kind = wire_type(model)
    granted = MAY_SEND.get((role, channel), "").split()
    if kind not in granted or model in REPORTS:
        return ErrorCode.POLICY_DENIED
    if channel is Channel.ADMIN:
        return None
    if not registered:
        return None if kind in FIRST[channel] else ErrorCode.NOT_REGISTERED
    return ErrorCode.INVALID_STATE if kind in AT_MOST_ONCE else None


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("channel", list(Channel))
@pytest.mark.parametrize("role", ROLES)
def test_every_message_is_let_through_exactly_where_the_protocol_says(
    role: Role, channel: Channel, registered: bool
) -> None:
    assert len(CLASSES) > 30
    found = {model.__name__: verdict(role, channel, model, registered) for model in CLASSES}
    assert found == {model.__name__: expected(role, channel, model, registered) for model in CLASSES}


def test_the_product_lets_through_what_the_table_lists_and_nothing_more() -> None:
    let_through = [
        (role, channel, model)
        for role in ROLES
        for channel in Channel
        for model in CLASSES
        for registered in (False, True)
        if verdict(role, channel, model, registered) is None
    ]
    assert set(let_through) == {
        (role, channel, kind) for (role, channel), kinds in permissions.ALLOWED.items() for kind in kinds
    }


def test_a_type_that_nobody_has_listed_is_denied_everywhere() -> None:
    class Novelty(Message):
        type: str = "NOVELTY"

    for role in ROLES:
        for channel in Channel:
            assert verdict(role, channel, Novelty, registered=True) is ErrorCode.POLICY_DENIED


@pytest.mark.parametrize("channel", list(Channel))
@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_business_on_its_own_channels_only(role: Role, channel: Channel) -> None:
    if (role, channel.value) in MAY_SEND:
        permissions.check_channel(rights(role), channel)
    else:
        with pytest.raises(PeerError, match=f"role {role} may not use this channel") as refused:
            permissions.check_channel(rights(role), channel)
        assert refused.value.code is ErrorCode.POLICY_DENIED


@pytest.mark.parametrize(("role", "channel"), [("participant", Channel.CONTROL), ("operator", Channel.ADMIN)])
def test_status_needs_the_profile_to_say_so(role: Role, channel: Channel) -> None:
    request = messages.StatusRequest()
    permissions.check_message(rights(role, may_ask_status=True), channel, request, registered=True)
    with pytest.raises(PeerError, match="may not ask for STATUS") as refused:
        permissions.check_message(rights(role, may_ask_status=False), channel, request, registered=True)
    assert refused.value.code is ErrorCode.POLICY_DENIED
