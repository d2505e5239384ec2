"""What a refusal means for the person who started the seat, and what to do about it (§5.4, §14.4).

A refusal is an ERROR of the Arbiter, or an objection of TLS. Some of them will be another answer in a minute;
the rest are the same answer however often one asks, and nobody asks again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium.errors import ErrorCode, Objection
from consilium.messages import PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

_AGAIN = "Start the seat again"
_SAME_RELEASE = "Run the same release of Consilium at both ends"

_MEANING: Mapping[str, str] = {
    ErrorCode.POLICY_DENIED: (
        "{name} may not take a seat: its certificate does not allow this name, or the roster has no such "
        "seat. Choose a name that both of them know, or have a certificate issued for it"
    ),
    ErrorCode.DUPLICATE_DISPLAY_NAME: (
        "{name} already sits in this debate with this certificate. Stop the other process of this seat, or "
        "wait until the Arbiter has noticed that its connection is gone"
    ),
    ErrorCode.AT_CAPACITY: (
        "there is no room for {name} now. An old session of its own counts until the Arbiter notices that "
        "its connection is gone; else another seat has to leave, or the limit to be raised"
    ),
    ErrorCode.INVALID_STATE: (
        "the debate does not take {name} in now: it is over, or it has started and its roster has "
        "cold_entry: false"
    ),
    ErrorCode.PROFILE_CAP: (
        "the certificate's profile does not allow what {name} asks for. Ask for less in the roster "
        "(required, disconnect_policy), or have the profile changed"
    ),
    ErrorCode.PROTOCOL_VERSION_UNSUPPORTED: (
        f"the Arbiter does not speak version {PROTOCOL_VERSION} of the protocol. {_SAME_RELEASE}"
    ),
    ErrorCode.TOKEN_REFUSED: (
        "the data connection of {name} was not accepted: its token was spent or too old, or the connection "
        f"came with another certificate. {_AGAIN}"
    ),
    ErrorCode.NOT_REGISTERED: f"the Arbiter does not know this session of {{name}} (any more). {_AGAIN}",
    ErrorCode.CERTIFICATE_EXPIRED: (
        "the certificate of {name} has expired. Ask for a renewed one, and put it where this one is"
    ),
    ErrorCode.RATE_LIMITED: "{name} came too often in too short a time. Wait a minute, then start it again",
    ErrorCode.TIMEOUT: f"{{name}} took too long to register. {_AGAIN}",
}
_UNKNOWN = "the Arbiter refuses {name}; its log says more"

_PASSING = frozenset(
    {
        ErrorCode.DUPLICATE_DISPLAY_NAME,  # the Arbiter has yet to notice that the old connection is gone
        ErrorCode.AT_CAPACITY,  # the same, or somebody else leaves
        ErrorCode.RATE_LIMITED,
        ErrorCode.TIMEOUT,
        ErrorCode.TOKEN_REFUSED,  # it was too slow, or the Arbiter was restarted in between
        ErrorCode.NOT_REGISTERED,
        ErrorCode.CERTIFICATE_EXPIRED,  # its folder may hold another by now; if not, TLS will say so
    }
)

_ADVICE: Mapping[Objection, str] = {
    Objection.OWN_AUTHORITY: "Ask whoever runs the council for a bundle of its present authority",
    Objection.OWN_EXPIRED: (
        "Ask for a renewed bundle if the certificate has expired; if it has not, the Arbiter's clock is "
        "wrong, or its list of revoked certificates is out of date"
    ),
    Objection.OWN_REVOKED: "Ask whoever runs the council; only a new certificate can help",
    Objection.OWN_CERTIFICATE: (
        "Check the clocks at both ends, and the certificate with `consilium pki verify`; or ask for another "
        "bundle"
    ),
    Objection.PEER_AUTHORITY: (
        "Somebody else answers at this address, or the council has a new authority: check the address, and "
        "ask for a new bundle"
    ),
    Objection.PEER_EXPIRED: (
        "Tell whoever runs the council to renew the Arbiter's certificate, unless the clock of this machine "
        "is wrong"
    ),
    Objection.PEER_NOT_YET_VALID: "Set the clock of this machine: by it, the certificate is not valid yet",
    Objection.PEER_NAME: (
        "Give the name that stands in the Arbiter's certificate with --server-name, or connect to that name"
    ),
    Objection.PEER_CERTIFICATE: "This is not an Arbiter that may be trusted: check the address",
    Objection.NOT_TLS: "No Arbiter answers there, but something else: check host and port",
}


def explain(code: str, name: str, message: str) -> str:
    """Say what the refusal ``code`` of the seat ``name`` comes from, and quote the Arbiter's ``message``."""
    return f"{_MEANING.get(code, _UNKNOWN).format(name=name)} ({code}: {message})"


def may_change(code: str) -> bool:
    """Whether the refusal ``code`` of a registration may be another answer soon, and is worth another try."""
    return code in _PASSING


def advice(objection: Objection) -> str:
    """What to do about an ``objection`` of TLS, which trying again will not change."""
    return _ADVICE[objection]


def another_debate(held: str | None, kept: str) -> str:
    """What a seat says that finds the debate ``held`` where its chat is of the debate ``kept``."""
    return (
        f"another debate is held there now, {held}; the chat of this seat is of {kept}. Begin a new chat for "
        "it: `consilium join --new-chat`, or another folder for --state"
    )
