"""Whether a seat's client is logged in, and `consilium seat login`: its own login, inside the seat's state.

Exit codes: 0 it is logged in now, 1 it is not, 2 the command cannot be carried out.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from consilium.config import HUMAN
from consilium.errors import AdapterFault, UserError
from consilium.settings import load_council, participant_of
from wrapper.adapters.choosing import Choice, program, project
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset, own_presets
from wrapper.clean import clean_line
from wrapper.isolation.confinement import add_options, confinement
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wrapper.adapters.client import ClientAdapter
    from wrapper.adapters.logins import Login
    from wrapper.adapters.presets import Preset

STATUS_BOUNDS = Bounds(overall=60, output_bytes=64 * 1024)
"""For a client that is asked whether it is logged in: slow ones take ten seconds to start."""

WORDS_CHARS = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """Whether a client is logged in; ``known`` is None where nothing can tell. ``how`` says by what."""

    known: bool | None
    how: str


async def entry(preset: Preset, adapter: ClientAdapter) -> Entry:
    """Look whether the client of ``adapter`` is logged in. No provider is asked."""
    login = preset.login
    if login is None:
        return Entry(None, "its preset does not say how that shows")
    if not login.needed:
        return Entry(known=True, how="no login is needed")
    found = [name for name in login.variables if adapter.environment.get(name)]
    if found:
        return Entry(known=True, how=f"by {found[0]}, untried")
    if login.status:
        return await _asked(preset.executable, login.status, adapter)
    return _kept(login, adapter)


def _kept(login: Login, adapter: ClientAdapter) -> Entry:
    """What the client's folder tells."""
    try:
        there = any(adapter.keeps(pattern) for pattern in login.files)
    except OSError as error:
        return Entry(None, clean_line(f"its folder cannot be looked at: {error}", WORDS_CHARS))
    if there:
        return Entry(known=True, how="its login is in its folder, untried")
    none = ", and no login is there" if login.files else ""
    return Entry(known=False, how=f"no key is passed to it{none}")


async def _asked(executable: str, arguments: Sequence[str], adapter: ClientAdapter) -> Entry:
    """What the client itself says."""
    says = f"says `{' '.join((executable, *arguments))}`"
    try:
        done = await adapter.ask(arguments, STATUS_BOUNDS)
    except AdapterFault as fault:
        return Entry(None, clean_line(fault.detail, WORDS_CHARS))
    if done.stopped is not None:
        return Entry(None, f"nothing {says}")
    return Entry(known=done.returncode == 0, how=says)


def parser() -> argparse.ArgumentParser:
    """The options of `consilium seat login`."""
    own = argparse.ArgumentParser(
        prog="consilium seat login",
        description="Open the login of a seat's client, inside that seat's state, where the seat finds it.",
        epilog="""\
examples:
  consilium seat login sceptic --council council.yaml --state state/sceptic
  docker compose run --rm claude login

Give the same --council and --state as to `consilium seat`. A client with a user of its own runs as that user.

Exit codes: 0 it is logged in now, 1 it is not, 2 the command cannot be carried out.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own.add_argument("name", metavar="NAME", help="the participant of the council file")
    own.add_argument("--council", type=Path, required=True, metavar="FILE", help="the council file")
    own.add_argument(
        "--state", type=Path, required=True, metavar="DIR", help="where the client keeps this seat's chat"
    )
    add_options(own)
    return own


def main(argv: list[str]) -> int:
    """Open the login, and say whether it is there. Raises `UserError`."""
    options = parser().parse_args(argv)
    council = load_council(options.council)
    participant = participant_of(council, options.name)
    if participant.adapter == HUMAN:
        raise UserError(f"{options.name} is a person, who has no client to log in")
    confined = confinement(options, participant.isolation, os.environ)
    preset = load_preset(participant.preset, own_presets(options.council))
    adapter = program(
        Choice(
            participant,
            council.limits,
            confined,
            state=options.state.absolute(),
            cwd=project(participant, options.council),
        ),
        NativeAdapter,
        preset,
    )
    if preset.login is None or not preset.login.argv:
        raise UserError(
            f"{preset.name} has no login of its own", hint=_keys(preset) or "its preset names none"
        )
    anyio.run(adapter.version)
    try:
        code = adapter.attended(preset.login.argv)
    except AdapterFault as fault:
        raise UserError(fault.detail, hint=preset.install) from None
    found = anyio.run(entry, preset, adapter)
    state = {True: "logged in", False: "not logged in", None: "perhaps logged in"}[found.known]
    ended = f"; its login ended with exit code {code}" if code else ""
    sys.stdout.write(f"{options.name}: {preset.executable} is {state} ({found.how}){ended}\n")
    return 0 if found.known or (found.known is None and code == 0) else 1


def _keys(preset: Preset) -> str:
    if preset.login is None or not preset.login.variables:
        return ""
    return f"set {preset.login.variables[0]}, and name it in the participant's `env`"
