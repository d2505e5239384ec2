"""Defaults and bounds that the command line and the authority share. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Literal

Profile = Literal["participant", "operator", "arbiter"]

TRUST_DOMAIN = "council.local"
CA_DAYS = 365
LEAF_DAYS = 30
MAX_CA_DAYS = 3650

CA_FOLDER = "ca"
"""The authority's own folder; no holder may have this name."""
