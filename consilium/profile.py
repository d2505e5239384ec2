"""What a certificate entitles its holder to (§5.2, §14.4): capabilities, granted and never self-declared.

The profile segment of a certificate's URI names one of these in the Arbiter's own configuration. A profile
that is not listed there entitles to nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from consilium.config import Section
from consilium.framing import MAX_LINE_BYTES
from consilium.identity import MAX_LIFETIME_DAYS
from consilium.messages import DisconnectPolicy

OWN = "{id}"

NamePattern = Annotated[
    str, StringConstraints(pattern=r"^(\*|\{id\}|\{id\}_\*|[a-z0-9_]{1,64}|[a-z0-9_]{1,63}\*)$")
]
"""A logical name, or the beginning of some followed by ``*``, or ``*`` for all. ``{id}`` stands for the id in
the certificate's own URI, with ``_`` for each ``-``."""

CommonName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
"""An authority's common name, letter by letter."""

PerSecond = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)]


class CapabilityProfile(Section):
    """The most that a holder may be granted; what it asks for beyond is cut down to this.

    ``names`` are the logical names it may register. ``disconnect_ceiling`` is the highest policy it may
    have, keep_alive being above drop (§8). ``max_message_bytes`` bounds one line. ``burst`` is how many
    messages may come at once before ``messages_per_second`` holds. ``max_lifetime_days`` is the longest life
    of a certificate that is accepted under this profile. ``issuer`` is the common name of the authority that
    must have signed it; without, any whose chain ends in ``ca.pem`` may have. ``max_seats`` and
    ``max_connections`` are how many of each one certificate may have at a time.
    """

    role: Literal["participant", "operator"]
    names: Annotated[tuple[NamePattern, ...], Field(max_length=4096)] = ()
    may_be_required: bool = False
    disconnect_ceiling: DisconnectPolicy = DisconnectPolicy.DROP
    may_ask_status: bool = False
    max_message_bytes: Annotated[int, Field(ge=1024, le=MAX_LINE_BYTES)] = MAX_LINE_BYTES
    messages_per_second: PerSecond = 20
    burst: Annotated[int, Field(ge=1, le=100_000)] = 40
    max_lifetime_days: Annotated[int, Field(ge=1, le=MAX_LIFETIME_DAYS)] = MAX_LIFETIME_DAYS
    issuer: CommonName | None = None
    max_seats: Annotated[int, Field(ge=1, le=4096)] = 64
    max_connections: Annotated[int, Field(ge=1, le=100_000)] = 256

    def may_use(self, name: str, subject: str) -> bool:
        """Whether a certificate with the id ``subject`` may use the logical name ``name`` (§5.2)."""
        own = subject.replace("-", "_")
        patterns = (pattern.replace(OWN, own) for pattern in self.names)
        return any(
            name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern
            for pattern in patterns
        )


DEFAULT_PROFILES: dict[str, CapabilityProfile] = {
    # A certificate is for the seat that it is called after: guest sits as guest, or as guest_claude. It keeps
    # its place, but it cannot make the debate wait for it: whom the
    # debate waits for stands in the roster, and a profile of the Arbiter's own grants more (§14.4).
    "participant": CapabilityProfile(
        role="participant",
        names=(OWN, f"{OWN}_*"),
        disconnect_ceiling=DisconnectPolicy.KEEP_ALIVE,
        may_ask_status=True,
    ),
    # An operator is no participant and has no name at the table (§3.3.D).
    "operator": CapabilityProfile(role="operator", may_ask_status=True, messages_per_second=50, burst=100),
}
"""What applies where the Arbiter's configuration says nothing else, by profile segment."""
