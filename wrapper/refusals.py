"""What an ERROR of the Arbiter means for the person who started the seat, and what to do about it (§5.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium.errors import ErrorCode
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
    ErrorCode.RATE_LIMITED: "{name} came too often in too short a time. Wait a minute, then start it again",
    ErrorCode.TIMEOUT: f"{{name}} took too long to register. {_AGAIN}",
}
_UNKNOWN = "the Arbiter refuses {name}; its log says more"


def explain(code: str, name: str, message: str) -> str:
    """Say what the refusal ``code`` of the seat ``name`` comes from, and quote the Arbiter's ``message``."""
    return f"{_MEANING.get(code, _UNKNOWN).format(name=name)} ({code}: {message})"
