"""From a certificate to what its session may do (§5.2, §14.4): the ceiling, and what is granted below it.

The full fingerprint is the key to everything; a name is a wish, and a value in a message is a request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.errors import ErrorCode, PeerError
from consilium.messages import DisconnectPolicy

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from consilium.certificate import Link
    from consilium.identity import Identity
    from consilium.messages import Reg, StateUpdate
    from consilium.profile import CapabilityProfile


@dataclass(frozen=True, slots=True)
class Rights:
    """A verified certificate together with the capability profile that it names.

    ``links`` are what lists of revoked certificates know it and the authorities above it by.
    """

    identity: Identity
    profile: CapabilityProfile
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Granted:
    """What a seat asked for, as far as its profile allows it. None: no change is asked for, or granted.

    A wish above the ceiling is not granted, and takes nothing away either: what the roster planned stands.
    ``over_required`` and ``over_policy`` say which wish was one.
    """

    required: bool | None
    disconnect_policy: DisconnectPolicy | None
    over_required: bool = False
    over_policy: bool = False


def rights_of(
    identity: Identity, profiles: Mapping[str, CapabilityProfile], links: tuple[Link, ...] = ()
) -> Rights:
    """Look the certificate's profile up. Raises `PeerError` (POLICY_DENIED)."""
    profile = profiles.get(identity.profile)
    if profile is None:
        raise PeerError(ErrorCode.POLICY_DENIED, f"no capability profile is called {identity.profile} here")
    if identity.lifetime_days > profile.max_lifetime_days:
        raise PeerError(
            ErrorCode.POLICY_DENIED,
            f"the certificate lives {identity.lifetime_days:.0f} days;"
            f" profile {identity.profile} accepts {profile.max_lifetime_days}",
        )
    if profile.issuer is not None and identity.issuer != profile.issuer:
        raise PeerError(
            ErrorCode.POLICY_DENIED,
            f"another authority signed the certificate than the one that profile {identity.profile} asks for",
            detail=f"{identity.issuer or 'one without a name'} instead of {profile.issuer}",
        )
    return Rights(identity, profile, links)


def check_crowd(rights: Rights, others: int) -> None:
    """Refuse one connection too many, beside ``others``. Raises `PeerError` (AT_CAPACITY)."""
    most = rights.profile.max_connections
    if others >= most:
        raise PeerError(
            ErrorCode.AT_CAPACITY, f"this certificate has {most} connections, and may have no more"
        )


def admit(reg: Reg, rights: Rights, held: Collection[str] = ()) -> tuple[str, Granted]:
    """Return the participant id and what is granted to it. Raises `PeerError`.

    POLICY_DENIED for a name that is not its own, AT_CAPACITY for a seat too many: one that lingers may go.
    ``held`` are the names of the seats that this certificate has already. The same name again is no further
    seat; whether it can be had twice is for the debate to say.
    """
    if not rights.profile.may_use(reg.name, rights.identity.subject):
        raise PeerError(ErrorCode.POLICY_DENIED, f"this certificate may not use the name {reg.name}")
    most = rights.profile.max_seats
    if reg.name not in held and len(set(held)) >= most:
        raise PeerError(ErrorCode.AT_CAPACITY, f"this certificate has {most} seats, and may have no more")
    granted = _grant(rights.profile, required=reg.required, disconnect_policy=reg.disconnect_policy)
    return rights.identity.display_name(reg.name), granted


def update(change: StateUpdate, name: str, rights: Rights) -> Granted:
    """Return what is granted of a change of one's own state (§5.4). Raises `PeerError` (NOT_OWNER)."""
    if change.name is not None and change.name != name:
        raise PeerError(ErrorCode.NOT_OWNER, "this session may not modify that participant")
    return _grant(rights.profile, required=change.required, disconnect_policy=change.disconnect_policy)


def _grant(
    profile: CapabilityProfile, *, required: bool | None, disconnect_policy: DisconnectPolicy | None
) -> Granted:
    over_required = bool(required) and not profile.may_be_required
    over_policy = (
        disconnect_policy is DisconnectPolicy.KEEP_ALIVE
        and profile.disconnect_ceiling is DisconnectPolicy.DROP
    )
    return Granted(
        required=None if over_required else required,
        disconnect_policy=None if over_policy else disconnect_policy,
        over_required=over_required,
        over_policy=over_policy,
    )
