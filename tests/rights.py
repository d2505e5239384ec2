"""Verified certificates for tests that need no TLS: what `arbiter.admission.Rights` is made of."""

from __future__ import annotations

from typing import Any

from arbiter.admission import Rights
from consilium.identity import DAY, Identity
from consilium.profile import DEFAULT_PROFILES

ANY_NAME = {
    **DEFAULT_PROFILES,
    "participant": DEFAULT_PROFILES["participant"].model_copy(update={"names": ("*",)}),
}
"""As built in, but that one certificate may have seats of any name."""

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
    """The rights of a holder of ``profile``, which is one of `ANY_NAME` with ``changes``."""
    return Rights(identity(profile=profile), ANY_NAME[profile].model_copy(update=changes))
