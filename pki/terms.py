"""Defaults, bounds and words that the whole room shares. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

Profile = Literal["participant", "operator", "arbiter"]

Issuer = Literal["participants", "operators", "servers"]
"""An intermediate, by the name of its folder. Each signs one kind of holder and nothing else."""

ISSUER_OF: dict[str, Issuer] = {
    "participant": "participants",
    "operator": "operators",
    "arbiter": "servers",
}
"""Who signs a certificate, by what its holder may be used for."""

Reason = Literal[
    "unspecified",
    "key-compromise",
    "affiliation-changed",
    "superseded",
    "cessation-of-operation",
    "privilege-withdrawn",
]
"""Why a holder's certificate is revoked (RFC 5280 §5.3.1): those that fit one, and cannot be taken back."""

TRUST_DOMAIN = "council.local"
CA_DAYS = 365
LEAF_DAYS = 30
MAX_CA_DAYS = 3650

CRL_DAYS = 30
"""How long a revocation list is good for.

As long as a leaf: whoever must come back to renew certificates renews the lists by the same command. A list
that is too old refuses every newcomer, so a short life buys a full stop and not much else: here a new list
is carried to the Arbiter when somebody is revoked, and not fetched when the old one ends.
"""
MAX_CRL_DAYS = 90

CA_FOLDER = "ca"
"""The authority's own folder; no holder may have this name."""

ROOT = "root"
INDEX = "index.json"

PRESET = "claude"
"""The client that a guest's line names, unless another is asked for."""
