"""What becomes of a request at the egress proxy, in one word each. Pure."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """One word a request; the label ``outcome`` of ``consilium_egress_requests_total``."""

    ALLOWED = "allowed"
    CROWDED = "crowded"
    """More connections than the proxy, or one address, may have."""
    SLOW = "slow"
    """What was due did not come in time."""
    MALFORMED = "malformed"
    """No request that this proxy understands."""
    METHOD = "method"
    """Something else than CONNECT: plain HTTP is never relayed."""
    HOST = "host"
    """A host that is not on the list."""
    PORT = "port"
    """Another port than 443."""
    UNRESOLVED = "unresolved"
    """The name has no address."""
    ADDRESS = "address"
    """The name leads to an address that is not public."""
    UNREACHABLE = "unreachable"
    """Nobody answered at the address."""
    NOT_TLS = "not_tls"
    """What came through the tunnel is no ClientHello."""
    NO_NAME = "no_name"
    """The ClientHello names no server, or hides which (ECH)."""
    OTHER_NAME = "other_name"
    """The ClientHello names another server than CONNECT did."""


class RefusedError(Exception):
    """A request is refused: what for, and a sentence for the log and for whoever asked."""

    def __init__(self, outcome: Outcome, sentence: str) -> None:
        super().__init__(sentence)
        self.outcome = outcome
        self.sentence = sentence
