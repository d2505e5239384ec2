"""What a reload changes, and whom it leaves outside: decided here, done in `arbiter.reload`. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from arbiter import admission, permissions
from consilium.errors import ErrorCode, PeerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from arbiter.admission import Rights
    from arbiter.debate.effects import Channel
    from consilium.profile import CapabilityProfile


@dataclass(frozen=True, slots=True)
class Configured:
    """What an Arbiter goes by and may read again; certificate and anchors by their bytes."""

    certificate: bytes
    anchors: bytes
    profiles: Mapping[str, CapabilityProfile]


def changed(old: Configured, new: Configured) -> tuple[str, ...]:
    """The names of what differs: ``certificate``, ``trust anchors``, ``profile NAME``, in this order."""
    names = []
    if new.certificate != old.certificate:
        names.append("certificate")
    if new.anchors != old.anchors:
        names.append("trust anchors")
    every = sorted(old.profiles.keys() | new.profiles.keys())
    names += [f"profile {name}" for name in every if old.profiles.get(name) != new.profiles.get(name)]
    return tuple(names)


def rights_now(
    held: Rights, channel: Channel, name: str | None, profiles: Mapping[str, CapabilityProfile]
) -> Rights:
    """The rights that ``profiles`` give to a certificate that is here, on ``channel``.

    ``name`` is the logical name that its seat has, if it has one. Raises `PeerError` (POLICY_DENIED) when it
    would not be let in again.
    """
    rights = admission.rights_of(held.identity, profiles)
    permissions.check_channel(rights, channel)
    if name is not None and not rights.profile.may_use(name):
        raise PeerError(ErrorCode.POLICY_DENIED, f"this certificate may not use the name {name}")
    return rights
