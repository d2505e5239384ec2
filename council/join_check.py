"""Who a bundle makes of its holder, and who answers at the Arbiter's address: `consilium join --check`.

Each step is one finding, in words; the first that fails says what to do, and nothing after it is tried.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
from cryptography import x509

from consilium.certificate import CertificateRefused, identify, load, validity
from consilium.channel import DIAL_SECONDS, Channel, dial
from consilium.codec import Codec
from consilium.errors import ChannelClosed, ChannelError, ChannelRefused, Objection, UserError
from consilium.messages import ControlToSeat, DataToSeat, Error, Ping, Pong
from consilium.tls import TlsStream
from wrapper.link import obstacle
from wrapper.refusals import advice, explain

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

    from consilium.identity import Identity
    from wrapper.link import Address

ANSWER_SECONDS = 5.0
"""How long the Arbiter may take to answer a PING."""

SILENCE_SECONDS = 1.0
"""A data connection that has stood for so long without a word has been accepted."""

ASK = "Ask whoever runs the council for a new bundle"
NO_ARBITER = "Something that is no Arbiter holds this connection, or an Arbiter of another release"

_CONTROL: Codec[Any] = Codec(ControlToSeat)
_DATA: Codec[Any] = Codec(DataToSeat)


@dataclass(frozen=True, slots=True)
class Found:
    """One step of the check: what was found, and what to do where it does not hold."""

    ok: bool
    sentence: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Guest:
    """What a bundle holds: the certificate, and what to connect with.

    ``nameless`` is the same as ``context``, except that it does not ask for the Arbiter's name: it serves to
    find out which names the Arbiter's certificate has, and for nothing else.
    """

    der: bytes
    context: ssl.SSLContext
    nameless: ssl.SSLContext

    def identity(self, now: float) -> Identity:
        """Who this is. Raises `UserError` for a certificate that no Arbiter would take."""
        life = validity(self.der, now)
        if life.state != "valid":
            hint = f"{ASK}, or set this machine's clock if it is wrong"
            raise UserError(
                f"the certificate in the bundle is {_how(life.state)}: {life.sentence}", hint=hint
            )
        try:
            return identify(self.der)
        except CertificateRefused as refusal:
            raise UserError(f"the certificate in the bundle takes no seat: {refusal}", hint=ASK) from refusal


def _how(state: str) -> str:
    return "expired" if state == "expired" else "not valid yet"


async def steps(guest: Guest, address: Address, now: float) -> AsyncIterator[Found]:
    """Try both ports, as far as one can without taking the seat. ``now`` counts from the epoch."""
    looks: list[Callable[[Guest, Address], Awaitable[Found]]] = [_look_at_control, _look_at_data]
    for look in looks:
        try:
            found = await look(guest, address)
        except ChannelError as error:
            found = Found(ok=False, sentence=str(error), hint=await why(error, guest, address, now))
        yield found
        if not found.ok:
            return


async def why(error: ChannelError, guest: Guest, address: Address, now: float) -> str:
    """What to do about a connection that ended with ``error``, by what can be found out from here."""
    if isinstance(error, ChannelClosed):
        return NO_ARBITER
    if not isinstance(error, ChannelRefused):
        return obstacle(error)
    return await remedy(error.objection, guest, address, now)


async def remedy(objection: Objection, guest: Guest, address: Address, now: float) -> str:
    """As `advice`, with what this end knows: its own certificate's time, or the Arbiter's names."""
    if objection in (Objection.OWN_EXPIRED, Objection.OWN_CERTIFICATE):
        return f"{advice(objection)}. By this clock, ours is {validity(guest.der, now).sentence}"
    if objection is Objection.PEER_NAME and (names := await _names(guest, address)):
        return f"{advice(objection)}. It has: {', '.join(names)}"
    return advice(objection)


async def _look_at_control(guest: Guest, at: Address) -> Found:
    """PING, and its PONG: only then is it certain that our certificate was accepted (TLS 1.3)."""
    channel = await _dial(guest, at, at.control_port, _CONTROL)
    try:
        with anyio.move_on_after(ANSWER_SECONDS):
            await channel.send(Ping(ts=0))
            answer = (await channel.receive()).message
            if isinstance(answer, Pong):
                where = f"{at.host}, port {at.control_port}"
                return Found(ok=True, sentence=f"control: the Arbiter at {where} takes this certificate")
            if isinstance(answer, Error):
                return _refused(answer)
        raise ChannelClosed(f"control: no PONG from {at.host}, port {at.control_port}")
    finally:
        await channel.aclose()


async def _look_at_data(guest: Guest, at: Address) -> Found:
    channel = await _dial(guest, at, at.data_port, _DATA)
    try:
        with anyio.move_on_after(SILENCE_SECONDS):
            answer = (await channel.receive()).message
            if isinstance(answer, Error):
                return _refused(answer)
        return Found(ok=True, sentence=f"data: the Arbiter listens at {at.host}, port {at.data_port}")
    finally:
        await channel.aclose()


async def _dial(guest: Guest, at: Address, port: int, codec: Codec[Any]) -> Channel[Any]:
    return await dial(
        at.host, port, guest.context, codec, prefix="c", server_name=at.server_name, timeout=DIAL_SECONDS
    )


def _refused(error: Error) -> Found:
    return Found(ok=False, sentence=explain(error.code, "this bundle", error.message))


async def _names(guest: Guest, at: Address) -> list[str]:
    """The names in the certificate of whoever answers, if that is one of the council's authority."""
    with suppress(ChannelError, OSError, CertificateRefused), anyio.move_on_after(ANSWER_SECONDS):
        raw = await anyio.connect_tcp(at.host, at.control_port)
        stream = await TlsStream.handshake(raw, guest.nameless, server_side=False, server_hostname=at.host)
        der = stream.peer_der
        await stream.aclose()
        return [] if der is None else names_of(der)
    return []


def names_of(der: bytes) -> list[str]:
    """The hosts that a certificate is good for. Raises `CertificateRefused` if it cannot be read."""
    with suppress(x509.ExtensionNotFound):
        names = load(der).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [*names.get_values_for_type(x509.DNSName), *names.get_values_for_type(x509.IPAddress)]
        return [str(name) for name in found]
    return []
