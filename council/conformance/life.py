"""A wrapper's life in a process of its own, to be killed in a turn: `python -m council.conformance.life`.

Standard input holds what a seat is made of, and the prompts of its turns.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from council.conformance.bench import ADAPTERS, BOUNDS
from wrapper.adapters.presets import Preset


async def live(told: dict[str, Any]) -> None:
    """Open the seat and take its turns."""
    adapter = ADAPTERS[told["adapter"]](
        Preset.model_validate_json(told["preset"]),
        told["settings"],
        Path(told["folder"]),
        environment=told["environment"],
        bounds=BOUNDS,
        profile="restricted",
        cwd=None,
        passed=told["passed"],
    )
    await adapter.open(told["system"])
    for prompt in told["prompts"]:
        await adapter.send_turn(prompt)


if __name__ == "__main__":
    anyio.run(live, json.load(sys.stdin))
