"""Where a person sits, and with which keys: what standard input and output are, and what the options say."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pydantic import ValidationError

from consilium.config import HUMAN, Participant
from consilium.errors import UserError
from consilium.problems import describe
from wrapper.adapters.people import check_keys
from wrapper.human.pipe import Pipe
from wrapper.human.terminal import at_terminal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from wrapper.adapters.people import PersonPreset
    from wrapper.human.front import Front

STDIN, STDOUT, STDERR = 0, 1, 2


def add_person_options(own: argparse._ActionsContainer) -> None:
    """Add what the command line can say of a person."""
    own.add_argument(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="for a person: skip a turn after so long without a key (default: never)",
    )
    own.add_argument(
        "--key",
        action="append",
        default=[],
        metavar="COMMAND=KEY",
        help="for a person: another key, as in away=ctrl+g; also for back, status, quit, timeout, newline",
    )


def with_person_options(participant: Participant, options: argparse.Namespace) -> Participant:
    """``participant`` with what the command line says of it. Raises `UserError`."""
    given: dict[str, object] = {}
    if options.timeout is not None:
        given["timeout_s"] = options.timeout
    if options.key:
        pairs = [pair.partition("=") for pair in options.key]
        given["keys"] = {**participant.keys, **{command: key.lower() for command, _, key in pairs}}
    if not given:
        return participant
    try:
        return Participant.model_validate({**participant.model_dump(exclude_defaults=True), **given})
    except ValidationError as error:
        raise UserError(f"{participant.name}: {describe(error.errors(include_url=False)[0])}") from None


def keys_of(preset: PersonPreset, participant: Participant) -> dict[str, str]:
    """Which command has which key for ``participant``. Raises `UserError` for a key that has two."""
    keys = {**preset.person.keys, **participant.keys}
    try:
        check_keys(keys)
    except ValueError as error:
        raise UserError(f"{participant.name}: {error}", hint="give one of the two another key") from None
    return {str(command): key for command, key in keys.items()}


def front_for(keys: Mapping[str, str], environ: Mapping[str, str]) -> Front:
    """A line editor where standard input is a terminal, else the lines that come. Raises `UserError`."""
    if not os.isatty(STDIN):
        return Pipe(STDIN, sys.stderr)
    target = next((number for number in (STDOUT, STDERR) if os.isatty(number)), None)
    if target is None:
        raise UserError(
            "nothing can be shown to the person: neither standard output nor standard error is a terminal",
            hint="leave one of them on the terminal",
        )
    if environ.get("TERM", "dumb") == "dumb":
        raise UserError(
            "this terminal cannot move its cursor (TERM is dumb or missing), so no line can be edited on it",
            hint=f"set TERM, or pipe the lines in; adapter: {HUMAN} takes both",
        )
    return at_terminal(STDIN, target, keys, environ, owns_stdout=target == STDOUT)
