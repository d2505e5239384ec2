"""What a reload changes, and whom it leaves outside: decided here, done in `arbiter.reload`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from arbiter import admission, permissions
from arbiter.edge.limits import Doors
from arbiter.revocation import Revocations
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
    revocations: Revocations = field(default_factory=Revocations)
    doors: Doors = field(default_factory=Doors)


def changed(old: Configured, new: Configured) -> tuple[str, ...]:
    """The names of what differs, in this order.

    ``certificate``, ``trust anchors``, ``revoked certificates``, ``doors``, ``profile NAME``.
    """
    names = []
    if new.certificate != old.certificate:
        names.append("certificate")
    if new.anchors != old.anchors:
        names.append("trust anchors")
    if new.revocations != old.revocations:
        names.append("revoked certificates")
    if new.doors != old.doors:
        names.append("doors")
    every = sorted(old.profiles.keys() | new.profiles.keys())
    names += [f"profile {name}" for name in every if old.profiles.get(name) != new.profiles.get(name)]
    return tuple(names)


class Revoked(PeerError):  # noqa: N818 - what happened to it, like CertificateRefused
    """The certificate of somebody who is here has been revoked, or that of an authority above it."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.POLICY_DENIED, "the certificate of this session has been revoked")


def rights_now(held: Rights, channel: Channel, name: str | None, configured: Configured) -> Rights:
    """The rights that ``configured`` gives to a certificate that is here, on ``channel``.

    ``name`` is the logical name that its seat has, if it has one. Raises `PeerError` (POLICY_DENIED) when it
    would not be let in again; `Revoked` if that is why.
    """
    if configured.revocations.revokes(held.links):
        raise Revoked
    rights = admission.rights_of(held.identity, configured.profiles, held.links)
    permissions.check_channel(rights, channel)
    if name is not None and not rights.profile.may_use(name, held.identity.subject):
        raise PeerError(ErrorCode.POLICY_DENIED, f"this certificate may not use the name {name}")
    return rights
