"""`consilium up`: a whole council on this machine, from its certificates to its closing lines."""

from __future__ import annotations

import argparse
import math
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from consilium.errors import UserError
from consilium.settings import load_council
from council import builtin, orphans
from council.causes import first_cause
from council.closing import close
from council.driver import INTERRUPTED, Driver
from council.prepare import prepare
from council.screen import FAREWELL_SECONDS, exit_code, open_printer, open_view
from council.startup import MODEL_URL, needs_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from council.printer import Printer
    from council.startup import Job

REAL_CLIENTS = ("claude", "codex", "gemini", "opencode", "qwen", "kimi", "agy")
"""The commands of clients that a seat can have instead of the embedded model."""

COUNCIL_FILE = Path("council.yaml")

EXAMPLES = """\
examples:
  consilium up
  consilium up --topic "Rewrite the billing service, or wrap it?" --seats 4 --rebuttals 2
  consilium up --roles sceptic,historian --max-seconds 300
  consilium up -f council.yaml --json

Without a file, three seats on the embedded model debate a built-in topic.
Ctrl-C closes the debate; its record stays readable."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        prog="consilium up",
        description="Start a whole council on this machine and watch it debate.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = options.add_argument_group("what is debated, and by whom")
    what.add_argument("-f", "--file", type=Path, metavar="FILE", help="hold the council of this file")
    what.add_argument("--topic", help="debate this")
    what.add_argument("--seats", type=int, metavar="N", help="have N seats, each with another role")
    what.add_argument("--roles", metavar="A,B,C", help="have a seat for each role (see `consilium roles`)")
    what.add_argument("--rebuttals", type=int, metavar="N", help="have N rounds of rebuttal")
    caps = options.add_argument_group("what it may cost at most")
    caps.add_argument("--max-rounds", type=int, metavar="N", help="rounds, opening and closing included")
    caps.add_argument("--max-tokens", type=int, metavar="N", help="tokens of all seats, in and out")
    caps.add_argument("--max-seconds", type=float, metavar="N", help="seconds of debate")
    where = options.add_argument_group("where")
    where.add_argument(
        "--dir", type=Path, metavar="DIR", help="new folder for all files (default: in debates)"
    )
    for name, port in (("control", 9998), ("data", 9999), ("admin", 9997)):
        default = f"{port}, or CONSILIUM_{name.upper()}_PORT"
        where.add_argument(
            f"--{name}-port", type=int, metavar="N", help=f"default {default}; 0 takes any free one"
        )
    where.add_argument(
        "--metrics-port",
        type=int,
        metavar="N",
        help="serve Prometheus at /metrics there (default: nowhere, or CONSILIUM_METRICS_PORT)",
    )
    show = options.add_argument_group("how it is shown")
    show.add_argument("--json", action="store_true", help="JSON lines, for programs")
    show.add_argument("--no-color", action="store_true", help="no colours, as with NO_COLOR=1")
    return options


def main(argv: Sequence[str]) -> int:
    """Hold a debate.

    Returns 0 when it was finished or stopped by a cap, 1 when it could not go on, 128 + n after signal n, 141
    when nobody reads on. Raises `UserError` for what cannot be held.
    """
    options = parser().parse_args(argv)
    job = prepare(options)
    orphans.adopt()
    try:
        with first_cause():
            return anyio.run(_hold, job, options)
    finally:
        orphans.end_all()


async def _hold(job: Job, options: argparse.Namespace) -> int:
    printer = open_printer()
    view = open_view(printer, as_json=options.json, no_color=options.no_color)
    driver = Driver(job, view, busy=lambda: printer.behind)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_print, printer, driver)
        view.begin(job.council, job.space.folder, time.monotonic(), endpoint=job.endpoint)
        for notice in _notices(job, options):
            view.say(notice, time.monotonic())
        verdict = await driver.run()
        view.end(close(job.space, verdict), time.monotonic())
        patience = FAREWELL_SECONDS if verdict.outcome == INTERRUPTED else math.inf
        with anyio.move_on_after(patience):
            await printer.drain()
        tasks.cancel_scope.cancel()
    return verdict.code


async def _print(printer: Printer, driver: Driver) -> None:
    driver.interrupt(exit_code(await printer.run()))


def _notices(
    job: Job, options: argparse.Namespace, which: Callable[[str], str | None] = shutil.which
) -> Iterator[str]:
    """What is worth saying once, before anything starts."""
    if options.file is None and _says_otherwise(COUNCIL_FILE):
        # A line of its own: what is to be copied is never wrapped.
        yield f"Note: {COUNCIL_FILE} in this folder is not used. To hold it:\nconsilium up -f {COUNCIL_FILE}"
    if not needs_model(job):
        if job.endpoint is not None:
            yield f"Seats with the client llm speak through {job.endpoint} ({MODEL_URL})."
        return
    yield (
        "The seats speak through the embedded model of 135 million parameters: the debate is real, "
        "its arguments are weak."
    )
    found = [client for client in REAL_CLIENTS if which(client)]
    if found:
        names = ", ".join(found)
        yield f"Found here, and not used, since they cost money: {names}. Seats for them come later."
    yield f"For a better one, name a model server of your own ({MODEL_URL}=http://...) and each seat's model."


def _says_otherwise(file: Path) -> bool:
    """Whether ``file`` is there, and is anything else than the built-in council written out."""
    if not file.exists():
        return False
    try:
        return load_council(file) != builtin.council()
    except UserError:  # somebody meant it to be held, and will want to know why it cannot be
        return True
