"""`python -m benchmarks`: measure, print the table, keep the figures. See benchmarks/README.md.

`python -m benchmarks soak` holds many debates for minutes, and is a command of its own.
"""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

import orjson

from benchmarks import machine, soak
from benchmarks.measures import (
    adapter,
    debates,
    decode,
    durable,
    handshakes,
    memory,
    peers,
    refused,
    repetition,
    stall,
    start,
    storm,
    turns,
)
from benchmarks.setting import RESULTS, Setting, prepared
from benchmarks.table import Row, Verdict, judged, render, too_busy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

MEASURES: dict[Callable[[Setting], list[Row]], frozenset[str]] = {
    decode.measure: frozenset({"P15"}),
    repetition.measure: frozenset({"P14"}),
    start.measure: frozenset({"P13"}),
    turns.measure: frozenset({"P1", "P2"}),
    adapter.measure: frozenset({"P18"}),
    peers.measure: frozenset({"P8", "P9", "P10"}),
    durable.measure: frozenset({"P3"}),
    stall.measure: frozenset({"P5"}),
    handshakes.measure: frozenset({"P6"}),
    debates.measure: frozenset({"P4"}),
    storm.measure: frozenset({"P16"}),
    refused.measure: frozenset({"P17"}),
    memory.measure: frozenset({"P7"}),
}
"""What measures which targets. The busy ones come last: the load remembers them for a minute."""

KNOWN = sorted(frozenset().union(*MEASURES.values()), key=lambda number: int(number[1:]))


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what the command line asks for. Returns 1 when a target that it names was not reached."""
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["soak"]:
        return soak.main(words[1:])
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=f"of {', '.join(KNOWN)}; without any, all. The exit code is 1 when a named one is not reached",
    )
    parser.add_argument("--quick", action="store_true", help="about a minute, and less to rely on")
    args = parser.parse_args(words)
    required = frozenset(args.targets)
    wanted = required or frozenset(KNOWN)
    if strangers := required.difference(KNOWN):
        parser.error(f"{', '.join(sorted(strangers))}: there is {', '.join(KNOWN)}")
    rows: list[Row] = []
    with prepared(quick=args.quick) as setting:
        place = machine.described(setting.folder)
        for measure, numbers in MEASURES.items():
            if wanted & numbers:
                rows += [row for row in taken(measure, setting) if row.number in wanted]
    rows.sort(key=lambda row: KNOWN.index(row.number))
    print(render(rows))
    print(f"\n{keep(rows, place)}")
    return int(any(row.verdict is Verdict.NO for row in rows if row.number in required))


def taken(measure: Callable[[Setting], list[Row]], setting: Setting) -> list[Row]:
    """Run one measurement, between two looks at the load."""
    print(f"{measure.__module__.rpartition('.')[2]} ...", file=sys.stderr, flush=True)
    before = machine.load()
    rows = measure(setting)
    return judged(rows, too_busy(before, machine.load(), machine.cores()))


def keep(rows: Sequence[Row], place: dict[str, object]) -> Path:
    """Write everything that is known as JSON; return where."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    path = RESULTS / f"{now}.json"
    document = {"when": now, "machine": place, "rows": [row.as_json() for row in rows]}
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    return path


if __name__ == "__main__":
    sys.exit(main())
