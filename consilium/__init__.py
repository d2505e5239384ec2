"""The language that every room of Consilium shares: messages, framing, errors, records, identity."""

from __future__ import annotations

__version__ = "0.1.0"
