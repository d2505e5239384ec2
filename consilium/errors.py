"""Every exception of the project that crosses a module, and every code that crosses the wire.

    ConsiliumError
    ├── PeerError         the other end broke a rule: it is told a code, we keep the reason
    ├── UserError         a person's configuration or command cannot be carried out; says the way out
    ├── ChannelError      a connection is no longer usable
    │   ├── ChannelClosed     the peer ended it in good order
    │   └── ChannelBroken     an outside cause ended it: cable, reset, TLS failure, time limit
    │       └── ChannelRefused    TLS itself said no, and would say it again
    ├── AdapterFault      a client did not produce a turn; says whether the prompt may have reached it
    └── TranscriptError   the record could not be written or is not whole

Anything else that is raised is a bug, and stops the debate instead of being papered over.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.messages import Fault, PromptSent


class ErrorCode(StrEnum):
    """What an ERROR message may say (§5.4). From MALFORMED on they are additions; see docs/protocol.md."""

    INVALID_STATE = "INVALID_STATE"
    NOT_REGISTERED = "NOT_REGISTERED"
    TURN_MISMATCH = "TURN_MISMATCH"
    TIMEOUT = "TIMEOUT"
    POLICY_DENIED = "POLICY_DENIED"
    PROFILE_CAP = "PROFILE_CAP"
    DUPLICATE_DISPLAY_NAME = "DUPLICATE_DISPLAY_NAME"
    PROTOCOL_VERSION_UNSUPPORTED = "PROTOCOL_VERSION_UNSUPPORTED"
    NOT_OWNER = "NOT_OWNER"
    MALFORMED = "MALFORMED"
    TOO_LARGE = "TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    TOKEN_REFUSED = "TOKEN_REFUSED"  # noqa: S105 - a code, not a secret
    AT_CAPACITY = "AT_CAPACITY"
    CERTIFICATE_EXPIRED = "CERTIFICATE_EXPIRED"


class ConsiliumError(Exception):
    """Base of every error that is ours."""


class PeerError(ConsiliumError):
    """Raised when the other end broke a rule.

    ``code`` and ``message`` go on the wire and must give nothing away; ``detail`` stays in our log.
    ``in_reply_to`` is the offending message's id when it could be read.
    """

    def __init__(
        self, code: ErrorCode, message: str, *, detail: str = "", in_reply_to: str | None = None
    ) -> None:
        super().__init__(f"{code}: {message}" + (f" ({detail})" if detail else ""))
        self.code = code
        self.message = message
        self.detail = detail
        self.in_reply_to = in_reply_to


class UserError(ConsiliumError):
    """Raised when what a person asked for cannot be done: one sentence, and the way out."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message + (f"\n  {hint}" if hint else ""))
        self.message = message
        self.hint = hint


class ChannelError(ConsiliumError):
    """Base of the two ways in which a connection ends."""


class ChannelClosed(ChannelError):  # noqa: N818 - named like its kin in anyio: a state, told as one
    """Raised when the peer ended the connection in good order."""


class ChannelBroken(ChannelError):  # noqa: N818
    """Raised when a connection ended for an outside cause; the message says which."""


class Objection(StrEnum):
    """What one end of a TLS handshake has against the other; ``OWN_...`` is said of our certificate."""

    OWN_AUTHORITY = "own_authority"
    OWN_EXPIRED = "own_expired"
    OWN_REVOKED = "own_revoked"
    OWN_CERTIFICATE = "own_certificate"
    PEER_AUTHORITY = "peer_authority"
    PEER_EXPIRED = "peer_expired"
    PEER_NOT_YET_VALID = "peer_not_yet_valid"
    PEER_NAME = "peer_name"
    PEER_CERTIFICATE = "peer_certificate"
    NOT_TLS = "not_tls"


class ChannelRefused(ChannelBroken):
    """Raised when TLS refused the connection, either end's TLS; ``objection`` says what for."""

    def __init__(self, message: str, objection: Objection) -> None:
        super().__init__(message, objection)
        self.objection = objection

    def __str__(self) -> str:
        return str(self.args[0])


class AdapterFault(ConsiliumError):  # noqa: N818 - the specification's word for it is fault
    """Raised when a client did not produce a turn (§6.5, §6.6).

    A fault is never a skip: the wrapper reports it as TURN_FAILED and the debate pauses. ``partial_bytes`` is
    how much of an answer the client had given by then; None where nobody can tell. ``resets_at`` is when a
    quota comes back, as TURN_FAILED has it, and ``refused`` what the client was not allowed to do until then.
    """

    def __init__(
        self,
        fault: Fault,
        prompt_sent: PromptSent,
        detail: str,
        *,
        partial_bytes: int | None = None,
        resets_at: str | None = None,
        refused: tuple[str, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.fault = fault
        self.prompt_sent = prompt_sent
        self.detail = detail
        self.partial_bytes = partial_bytes
        self.resets_at = resets_at
        self.refused = refused


class TranscriptError(ConsiliumError):
    """Raised when the record could not be written, or when what was read is not whole."""
