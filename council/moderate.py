"""`consilium moderate`: the operator who is no person (§3.3.D): orders a debate's course, and shows it.

1. The course is ordered once, before the debate begins (`council.plan`); an Arbiter that is started again has
   it in its record.
2. It decides nothing that is a person's to decide: a pause is told, with the line that ends it.
3. Whether an Arbiter is there or not, it follows the debate to its end, and ends as that ended.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from consilium.health import VARIABLE, Report, place
from consilium.messages import DebateState, Status, StatusRequest
from consilium.records import EventName, EventRecord
from consilium.reporting import report_health
from consilium.settings import load_council
from council import builtin
from council.access import Access, add_options
from council.causes import first_cause
from council.closing import Closing, stood
from council.following import Follower
from council.giving import give
from council.plan import Starter, course
from council.screen import Showing, open_printer, open_view
from council.startup import MODEL_URL
from council.status import state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from consilium.config import Council
    from consilium.records import Stored
    from council.course import Verdict
    from council.live import View
    from council.operator import Operator

PATIENCE = 120.0
"""How long an Arbiter is waited for that does not listen yet, in seconds."""

SILENCE = 60.0
"""The longest time without a line, in seconds, where the lines are kept and not watched."""

NOT_BEGUN = frozenset({DebateState.WAITING_QUORUM, DebateState.READY})

EXAMPLES = """\
examples:
  consilium moderate --bundle certs/moderator --council council.yaml
  consilium moderate --bundle certs/moderator --host arbiter --operator "docker compose run --rm operator"

It orders the phases, the rounds and the end that the council file plans, shows the debate as it happens, and
ends as it ended: 0 finished or stopped by a cap, 1 in error or refused, 4 no connection. When the debate is
paused it waits for an operator, and says what to type."""


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium moderate``."""
    made = argparse.ArgumentParser(
        prog="consilium moderate",
        description="Order the course of a debate that an Arbiter holds, and show it as it happens.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "--council", type=Path, metavar="FILE", help="the council file (default: the built-in council)"
    )
    made.add_argument(
        "--health-file", type=Path, metavar="FILE", help=f"report health there (default: {VARIABLE})"
    )
    add_options(made)
    shown = made.add_argument_group("how it is shown")
    shown.add_argument("--json", action="store_true", help="JSON lines, for programs")
    shown.add_argument("--no-color", action="store_true", help="no colours, as with NO_COLOR=1")
    return made


def main(argv: Sequence[str]) -> int:
    """Moderate one debate; return the exit code. Raises `UserError`."""
    top = parser()
    options = top.parse_args(argv)
    if options.bundle is None:
        top.error("--bundle is needed: an operator's credentials, for example --bundle certs/moderator")
    council = builtin.council() if options.council is None else load_council(options.council)
    access = Access(options)
    access.open()
    with first_cause():
        return anyio.run(_moderate, council, access, options)


async def _moderate(council: Council, access: Access, options: argparse.Namespace) -> int:
    printer = open_printer()
    view = open_view(printer, as_json=options.json, no_color=options.no_color, silence=SILENCE)
    moderator = Moderator(council, view, access.command, time.monotonic)
    follower = Follower(
        access.connect,
        view,
        from_seq=0,
        clock=time.monotonic,
        companion=moderator,
        patience=PATIENCE,
    )
    farewell = "No longer moderating; the debate goes on as it was ordered."
    showing = Showing(view, printer, farewell=farewell, closing=moderator.closing)
    async with anyio.create_task_group() as tasks:
        if (health := place(options.health_file)) is not None:
            tasks.start_soon(report_health, health, moderator.report)
        view.begin(council, None, time.monotonic(), endpoint=os.environ.get(MODEL_URL) or None)
        code = await showing.run(follower.run)
        tasks.cancel_scope.cancel()
    return code


class Moderator:
    """Keeps a debate on its course; `council.following.Companion` of whoever follows it."""

    def __init__(
        self, council: Council, view: View, command: Callable[..., str], clock: Callable[[], float]
    ) -> None:
        """``command`` makes the line that a person types; ``clock`` is monotonic, in seconds."""
        self._council = council
        self._view = view
        self._command = command
        self._clock = clock
        self._starter = Starter(council)
        self._records: list[Stored] = []
        self._ordered = False

    async def arrive(self, admin: Operator) -> None:
        """Order the course of a debate that has not begun; one that has was ordered before."""
        status = await _status(admin)
        if not self._ordered and status.debate_state in NOT_BEGUN:
            for order in course(self._council):
                await give(admin, order, self._say)
        self._ordered = True

    async def hear(self, record: Stored, admin: Operator) -> None:
        """Begin where nobody is waited for, once everybody is there; tell of a pause."""
        self._records.append(record)
        start = self._starter.observe(record.entry)
        if start is not None and (await _status(admin)).debate_state is DebateState.READY:
            await give(admin, start, self._say)
        if isinstance(record.entry, EventRecord) and record.entry.event is EventName.DEBATE_PAUSED:
            await self._tell_of_pause(admin)

    async def _tell_of_pause(self, admin: Operator) -> None:
        """Say what a person can do, if the debate is paused now and not only in what is read again."""
        status = await _status(admin)
        if status.debate_state is not DebateState.PAUSED:
            return
        lines = [f"The debate is {state(status)}. It waits for its operator: to see why, and to go on,"]
        self._say("\n".join([*lines, self._command("status"), self._command("resume")]))

    def closing(self, verdict: Verdict) -> Closing:
        """What is shown at the end."""
        return Closing(verdict, stood(self._records), ())

    def report(self) -> Report:
        """How it is: well once the course is ordered, so that seats may come."""
        ordered = "the course of the debate is ordered"
        problems = () if self._ordered else ("the course of the debate is not ordered yet",)
        return Report("moderator", self._clock(), ordered, problems=problems)

    def _say(self, sentence: str) -> None:
        self._view.say(sentence, self._clock())


async def _status(admin: Operator) -> Status:
    status = await admin.request(StatusRequest())
    assert isinstance(status, Status)
    return status
