"""Verified certificates for tests that need no TLS: what `arbiter.admission.Rights` is made of."""

from __future__ import annotations

from typing import Any

from arbiter.admission import Rights
from consilium.identity import DAY, Identity
from consilium.profile import DEFAULT_PROFILES

FINGERPRINT = bytes.fromhex("AB12CD34") + bytes(28)


def identity(**changes: Any) -> Identity:
    """A seat's identity."""
    fields: dict[str, Any] = {
        "fingerprint": FINGERPRINT,
        "trust_domain": "council.local",
        "profile": "participant",
        "subject": "seat",
        "not_after": 2e9,
        "lifetime_s": 30 * DAY,
    }
    return Identity(**fields | changes)


def rights(profile: str = "participant", **changes: Any) -> Rights:
    """The rights of a holder of ``profile``, which is one of the defaults with ``changes``."""
    return Rights(identity(profile=profile), DEFAULT_PROFILES[profile].model_copy(update=changes))
