"""What a holder, a host or a trust domain may be called. Pure: all refusals, and nothing else."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from cryptography import x509

from consilium.errors import UserError
from pki.terms import CA_FOLDER, TRUST_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,63}")
_HOST = re.compile(r"(?=.{1,253}\Z)(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")


def check_name(name: str) -> None:
    """Raise `UserError` unless ``name`` can be a holder's, and its folder's."""
    if _NAME.fullmatch(name) is None or name == CA_FOLDER:
        raise UserError(
            f"{name!r} cannot be the name of a holder",
            hint=f"1 to 64 of a-z, 0-9, _ and -, not beginning with -, and not {CA_FOLDER!r}",
        )


def check_trust_domain(trust_domain: str) -> None:
    """Raise `UserError` unless ``trust_domain`` can stand in an identity."""
    if _HOST.fullmatch(trust_domain) is None:
        raise UserError(
            f"{trust_domain!r} cannot be a trust domain", hint=f"like a host name, for example {TRUST_DOMAIN}"
        )


def check_days(days: int, most: int) -> None:
    """Raise `UserError` unless a lifetime of ``days`` can be given."""
    if not 1 <= days <= most:
        raise UserError(f"a lifetime of {days} days cannot be given", hint=f"from 1 to {most} days")


def is_host(name: str) -> bool:
    """Whether ``name`` is a host name in full, in lower case.

    What ends in digits is an address to every client, and would be looked for among the addresses.
    """
    return _HOST.fullmatch(name) is not None and not name.rpartition(".")[2].isdigit()


def hosts(dns: Sequence[str], ips: Sequence[str]) -> list[x509.GeneralName]:
    """The hosts of an Arbiter, as they stand in its certificate. Raises `UserError`."""
    if not dns and not ips:
        raise UserError(
            "an arbiter's certificate must name the hosts it is reached under",
            hint="for example: --dns localhost --ip 127.0.0.1",
        )
    for name in dns:
        if not is_host(name):
            raise UserError(
                f"{name!r} is not a host name", hint="lower case, in full, without wildcards; addresses: --ip"
            )
    try:
        addresses = [ipaddress.ip_address(ip) for ip in ips]
    except ValueError as cause:
        raise UserError(f"{cause}") from cause
    return [*(x509.DNSName(name) for name in dns), *(x509.IPAddress(address) for address in addresses)]
