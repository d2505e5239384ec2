"""`python peak_of_a_turn.py FOLDER`: one turn of the `llm` that is in FOLDER, in a process of its own.

Prints, as JSON, the fault that it ended in, and how many MB more than before the process had at most.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import anyio

from consilium.errors import AdapterFault
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds


def memory(name: str) -> int:
    """What the kernel says of our memory, in KiB."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def begin_anew() -> None:
    """Let the kernel's high-water mark begin where we are now (proc(5))."""
    Path("/proc/self/clear_refs").write_text("5")


async def main(folder: Path) -> None:
    adapter = NativeAdapter(
        load_preset("llm"),
        {"api_base": "http://127.0.0.1:1/v1"},
        folder / "seat",
        environment={"PATH": f"{folder}:/usr/bin:/bin"},
        bounds=Bounds(overall=100),
    )
    await adapter.open("You answer.")
    idle = memory("VmRSS")
    begin_anew()
    told: dict[str, str | int] = {}
    try:
        await adapter.send_turn("Well?")
    except AdapterFault as fault:
        told = {"fault": fault.fault, "sent": fault.prompt_sent, "detail": fault.detail}
    told["more_mb"] = (memory("VmHWM") - idle) // 1024
    await adapter.close()
    print(json.dumps(told))  # noqa: T201 - for the test that runs it


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
