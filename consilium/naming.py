"""How what belongs to one debate is called on disk: when it began, and what it is about. Pure."""

from __future__ import annotations

import re

SLUG_CHARS = 40

MOMENT = "%Y-%m-%d-%H%M%S"
"""The form of the first part, for `time.strftime`: names sort by age."""


def debate_name(moment: str, topic: str, number: int = 1) -> str:
    """A name for the debate on ``topic`` that begins at ``moment``; ``number`` tells namesakes apart."""
    slug = re.sub(r"[^a-z0-9]+", "-", topic.lower())[:SLUG_CHARS].strip("-") or "debate"
    return f"{moment}-{slug}" if number == 1 else f"{moment}-{slug}-{number}"
