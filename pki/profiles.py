"""What the Arbiter's own capability profiles say of a certificate that is about to be issued (§5.2, §14.4).

The Arbiter decides by its file when somebody connects; here it is read to say so beforehand. Only the one
profile is looked at: whether the rest of the file is in order is the Arbiter's question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
from pydantic import ValidationError

from consilium.certificate import ARBITER
from consilium.errors import UserError
from consilium.problems import describe
from consilium.profile import DEFAULT_PROFILES, OWN, CapabilityProfile
from consilium.strict_yaml import read_tree
from pki.build import intermediate_name
from pki.terms import ISSUER_OF

if TYPE_CHECKING:
    from pathlib import Path

    from pki.terms import Issuer


def read_profile(segment: str, path: Path | None) -> CapabilityProfile:
    """The capability profile ``segment`` of the file at ``path``; without one, the one that is built in.

    Raises `UserError` when there is none, or when it cannot be used.
    """
    if path is None:
        if segment not in DEFAULT_PROFILES:
            known = ", ".join(ISSUER_OF)
            raise UserError(
                f"no profile is called {segment!r}",
                hint=f"built in are {known}; name the Arbiter's own with --profiles FILE",
            )
        return DEFAULT_PROFILES[segment]
    tree, _ = read_tree(path)
    if not isinstance(tree, dict) or segment not in tree:
        names = ", ".join(str(name) for name in tree) if isinstance(tree, dict) else "no profile"
        raise UserError(
            f"{path} has no profile {segment!r}, so its Arbiter would refuse the certificate",
            hint=f"add the profile there; it has {names}",
        )
    try:
        return CapabilityProfile.model_validate_json(orjson.dumps(tree[segment]), strict=True)
    except ValidationError as error:
        problem = describe(error.errors(include_url=False)[0])
        raise UserError(f"{path}: the profile {segment} cannot be used: {problem}") from None


def issuer_for(segment: str, path: Path | None, *, days: int, trust_domain: str) -> Issuer:
    """Who signs a certificate of this profile.

    Raises `UserError` also for a life longer than it accepts, and for an issuer other than ours.
    """
    if segment == ARBITER:
        return ISSUER_OF[ARBITER]
    profile = read_profile(segment, path)
    if days > profile.max_lifetime_days:
        raise UserError(
            f"the profile {segment} accepts certificates of at most {profile.max_lifetime_days} days",
            hint=f"--days {profile.max_lifetime_days}",
        )
    issuer = ISSUER_OF[profile.role]
    name = intermediate_name(issuer, trust_domain)
    if profile.issuer not in {None, name}:
        raise UserError(
            f"{path}: the profile {segment} wants the signature of {profile.issuer}, and here {name} signs",
            hint=f"issuer: {name}",
        )
    return issuer


def check_name_at_table(name: str, holder: str, segment: str, path: Path | None) -> None:
    """Raise `UserError` unless ``holder``, of profile ``segment``, may take the seat called ``name``."""
    profile = read_profile(segment, path)
    if profile.role != "participant":
        raise UserError(
            f"the profile {segment} is an operator's, who has no name at the table",
            hint="an operator's file is made with `consilium pki issue` and `consilium pki bundle`",
        )
    if profile.may_use(name, holder):
        return
    allowed = ", ".join(pattern.replace(OWN, holder.replace("-", "_")) for pattern in profile.names) or "none"
    if path is None:
        raise UserError(
            f"the certificate of {holder} may not use the name {name!r}, and nothing was issued",
            hint=f"its names are {allowed}. Call the holder {name} instead, or give the Arbiter profiles "
            "of its own, and name them here: --profiles FILE",
        )
    raise UserError(
        f"{path}: the profile {segment} does not allow the name {name!r}, and nothing was issued",
        hint=f"its names are {allowed}. Add {name} to `names` of {segment} there, or give the guest a "
        f"profile of its own, for --profile {name}:\n\n{_own(name)}\n"
        "  then `consilium admin reload`, and invite again",
    )


def _own(name: str) -> str:
    return f"    {name}:\n      role: participant\n      names: [{name}]\n      may_ask_status: true\n"
