"""`consilium doctor`: which clients can be used here, what is missing, and the next step.

Exit codes: 0 what was asked for can be used, 1 something is missing, 2 the command cannot be carried out.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from consilium.config import HUMAN, Participant
from consilium.console import Console, Style, json_text
from consilium.errors import UserError
from consilium.settings import load_council
from council.checkup import PERSON, Finding, Machine, Trouble, check_seat, examine
from wrapper.adapters.presets import load_preset, preset_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio.abc import TaskStatus

LABEL = 10
TICK_SECONDS = 2.0
AT_ONCE = 2
"""How many clients are looked at at a time: they are heavy programs."""


def parser() -> argparse.ArgumentParser:
    """The options of `consilium doctor`."""
    own = argparse.ArgumentParser(
        prog="consilium doctor",
        description="Say which clients can be used on this machine, what is missing, and the next step.",
        epilog="""\
examples:
  consilium doctor                             every client that is known
  consilium doctor claude codex                these
  consilium doctor --council council.yaml      the seats of a council file
  consilium doctor claude --probe              and one real turn, which costs something

Without --probe no provider is asked: a key that is there may still be refused.
Exit codes: 0 what was asked for can be used (without names: anything), 1 something is missing, 2 the command
cannot be carried out.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own.add_argument("presets", nargs="*", metavar="PRESET", help="the clients (default: all)")
    own.add_argument("--council", type=Path, metavar="FILE", help="the seats of this council file instead")
    own.add_argument(
        "--state", type=Path, metavar="DIR", help="with --council: the folder of the seats' states, DIR/NAME"
    )
    own.add_argument("--probe", action="store_true", help="have each client take one real turn")
    own.add_argument("--json", action="store_true", help="one JSON object, for programs")
    return own


def main(argv: Sequence[str]) -> int:
    """Look, and tell. Raises `UserError`."""
    options = parser().parse_args(argv)
    if options.council is not None and options.presets:
        raise UserError("name clients, or a council file", hint="leave out one of the two")
    if options.state is not None and options.council is None:
        raise UserError("--state goes with --council")
    council = None if options.council is None else load_council(options.council)
    seats = [_of_preset(name) for name in options.presets or preset_names()]
    if council is not None:
        seats = list(council.participants)
    machine = Machine.here()
    findings = anyio.run(_look, seats, machine, options)
    if options.json:
        told = {
            "clients": [finding.as_json() for finding in findings],
            "machine": {"landlock": machine.landlock, "nft": machine.nft, "docker": machine.docker},
        }
        sys.stdout.write(json_text(told) + "\n")
    else:
        console = Console.on(sys.stdout, os.environ)
        for finding in findings:
            tell(console, finding)
        console.line(f"{'machine':<{LABEL}}", machine.sentence())
    named = bool(options.presets) or council is not None
    usable = [finding.usable for finding in findings if named or finding.program != PERSON]
    return 0 if (all(usable) if named else any(usable)) else 1


def _of_preset(name: str) -> Participant:
    """A seat that has only its client: native where that is known, so that a person's own login counts."""
    if name == HUMAN:
        return Participant(name="me", preset=HUMAN)
    preset = load_preset(name)
    variables = () if preset.login is None else preset.login.variables
    passed = tuple(variable for variable in variables if os.environ.get(variable))
    profile = "native" if "native" in preset.profiles else "restricted"
    return Participant(name="seat", preset=name, harness_profile=profile, env=passed)


async def _look(seats: Sequence[Participant], machine: Machine, options: argparse.Namespace) -> list[Finding]:
    named = options.council is not None
    findings = [Finding(seat.name if named else seat.preset, seat.preset) for seat in seats]
    doing: set[str] = set()
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def look(seat: Participant, finding: Finding) -> None:
        async with limit:
            doing.add(finding.name)
            try:
                if named:
                    finding.troubles += check_seat(seat, options.council, machine)
                state = options.state.absolute() / seat.name if options.state is not None else None
                await examine(seat, finding, state=state, council=options.council, probed=options.probe)
            except UserError as error:
                finding.troubles.append(Trouble(error.message, error.hint))
            doing.discard(finding.name)

    async with anyio.create_task_group() as ticking:
        if not options.json and sys.stderr.isatty():
            ticking.start_soon(_tick, doing)
        async with anyio.create_task_group() as looking:
            for seat, finding in zip(seats, findings, strict=True):
                looking.start_soon(look, seat, finding)
        ticking.cancel_scope.cancel()
    return findings


async def _tick(doing: set[str], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Say what takes long."""
    task_status.started()
    while True:
        await anyio.sleep(TICK_SECONDS)
        if doing:
            sys.stderr.write(f"looking at {', '.join(sorted(doing))} ...\n")


def tell(console: Console, finding: Finding) -> None:
    """One client, for a person."""
    verdict = ("usable", Style.GREEN) if finding.usable else ("not usable", Style.RED)
    of = f" ({finding.preset})" if finding.preset not in ("", finding.name) else ""
    console.line((finding.name, Style.BOLD), of, ": ", verdict)
    tried = f", tried with {finding.known_good}" if finding.known_good else ""
    facts = {
        "program": f"{finding.path or finding.program} {finding.version}{tried}" if finding.version else "",
        "profiles": ", ".join(finding.profiles) if finding.version else "",
        "model": finding.model,
        "login": finding.login,
        "turn": finding.probe,
    }
    for label, text in facts.items():
        if text:
            console.text(text, first=f"  {label:<{LABEL}}", indent=" " * (LABEL + 2))
    for trouble in finding.troubles:
        style = Style.RED if trouble.weight == "missing" else Style.YELLOW
        label = "missing" if trouble.weight == "missing" else "note"
        console.text(trouble.what, first=f"  {label:<{LABEL}}", indent=" " * (LABEL + 2), style=style)
        if trouble.step:
            console.text(trouble.step, first=f"  {'next':<{LABEL}}", indent=" " * (LABEL + 2))
