"""`consilium seat`: one seat's process (§3.3.A). Reads what the council file says of it, then lives it.

Exit codes: 0 the debate ended, or the seat left; 2 the command or its configuration cannot be carried out;
3 the Arbiter refused the seat; 4 the link was lost for good; 1 anything else.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import anyio
import orjson

from consilium.config import HUMAN, PEXPECT
from consilium.credentials import Credentials
from consilium.dumps import forbid_core_dumps
from consilium.errors import UserError
from consilium.health import VARIABLE, place
from consilium.messages import Reg
from consilium.ports import Ports
from consilium.reporting import report_health
from consilium.settings import load_council, participant_of
from consilium.tls import client_context
from wrapper import login
from wrapper.adapters.choosing import MODEL_URL, Choice, client, project
from wrapper.adapters.presets import own_presets
from wrapper.clean import clean_line
from wrapper.events import Outcome
from wrapper.human.choosing import add_person_options, with_person_options
from wrapper.isolation.confinement import add_options, confinement
from wrapper.isolation.trial import settled
from wrapper.link import Address
from wrapper.prompts import role_prompt_hash, system_prompt
from wrapper.roles import find_role
from wrapper.seat import Plan, Seat, log
from wrapper.vitals import Vitals

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from consilium.config import Council, Participant
    from consilium.messages import Meta
    from wrapper.adapters.base import Person
    from wrapper.events import End

    Say = Callable[[Mapping[str, Any]], None]

CONNECT_TIMEOUT = 60.0
"""Longer than an Arbiter takes to notice that a seat's old connection is gone: three heartbeats of 15 s."""

GIVE_UP_AFTER = 3600.0

MAX_SECONDS = 7 * 24 * 3600.0

REASON_CHARS = 1000

EXIT_CODES: Mapping[Outcome, int] = {
    Outcome.FINISHED: 0,
    Outcome.STOPPED_BY_CAP: 0,
    Outcome.ERROR: 0,
    Outcome.LEFT: 0,
    Outcome.REFUSED: 3,
    Outcome.LINK_LOST: 4,
    Outcome.PROTOCOL_FAULT: 1,
    Outcome.CLIENT_FAILED: 1,
}


def parser() -> argparse.ArgumentParser:
    """The options of `consilium seat`."""
    own = argparse.ArgumentParser(
        prog="consilium seat",
        description="Run one seat of a council: register at the Arbiter, and drive the seat's client. A seat "
        "that lost its connection comes back by itself, with its chat; the debate stays paused until the "
        "operator resumes it.",
        epilog="`consilium seat login NAME` opens the login of a seat's client. "
        "Exit codes: 0 the debate ended or the seat left, 2 wrong usage or configuration, 3 refused "
        "by the Arbiter, 4 link lost for good, 1 anything else.",
    )
    own.add_argument("--council", type=Path, required=True, metavar="FILE", help="the council file")
    own.add_argument("--name", required=True, help="the participant of the council file that sits here")
    own.add_argument(
        "--certs", type=Path, required=True, metavar="DIR", help="the seat's cert.pem, key.pem and ca.pem"
    )
    own.add_argument(
        "--state", type=Path, required=True, metavar="DIR", help="where the client keeps this seat's chat"
    )
    own.add_argument("--host", help="where the Arbiter is (default: CONSILIUM_HOST, else 127.0.0.1)")
    own.add_argument("--control-port", type=int, metavar="PORT", help="its control port (default: 9998)")
    own.add_argument("--data-port", type=int, metavar="PORT", help="its data port (default: 9999)")
    own.add_argument(
        "--socket-dir",
        type=Path,
        metavar="DIR",
        help="the folder of its UNIX sockets, in place of host and ports (or CONSILIUM_LISTEN=unix)",
    )
    own.add_argument(
        "--server-name", metavar="NAME", help="the name in its certificate, if not the host or localhost"
    )
    own.add_argument(
        "--model-url",
        metavar="URL",
        help=f"where `consilium model` serves the embedded model; {MODEL_URL} names any other server, "
        "and the participant its model there",
    )
    own.add_argument(
        "--connect-timeout",
        type=seconds,
        default=CONNECT_TIMEOUT,
        metavar="SECONDS",
        help="how long to wait for an Arbiter that does not listen yet (default: %(default)g)",
    )
    add_options(own)
    own.add_argument(
        "--if-listed",
        action="store_true",
        help="end at once, as if it were done, where the council file has no participant NAME",
    )
    own.add_argument(
        "--give-up-after",
        type=seconds,
        default=GIVE_UP_AFTER,
        metavar="SECONDS",
        help="how long to try to come back after a lost connection; 0 ends at once (default: %(default)g)",
    )
    own.add_argument(
        "--health-file", type=Path, metavar="FILE", help=f"report health there (default: {VARIABLE})"
    )
    own.add_argument(
        "--lifeline", action="store_true", help="leave when standard input ends: the parent is gone"
    )
    add_person_options(own.add_argument_group("who sits here in person (preset: human)"))
    return own


SUBCOMMANDS: Mapping[str, Callable[[], argparse.ArgumentParser]] = {"login": login.parser}
"""What may stand first in place of the options, and its own."""


def main(argv: list[str]) -> int:
    """Run the seat that ``argv`` describes. Raises `UserError` for what cannot be carried out."""
    if argv[:1] == ["login"]:
        return login.main(argv[1:])
    forbid_core_dumps()
    options = parser().parse_args(argv)
    if options.if_listed and not _is_listed(options):
        return 0
    end = anyio.run(_live, options)
    code = EXIT_CODES[end.outcome]
    log.log(logging.ERROR if code else logging.INFO, "%s", clean_line(end.reason, REASON_CHARS))
    return code


async def _live(options: argparse.Namespace) -> End:
    council = load_council(options.council)
    participant = with_person_options(participant_of(council, options.name), options)
    human = participant.adapter == HUMAN
    if human and options.lifeline:
        raise UserError(
            f"{participant.name} is a person, who types where --lifeline listens",
            hint="give the person a terminal: consilium seat, without --lifeline",
        )
    handler = _log_to_stderr(participant.name)
    label, prompt = _role(participant, options.council)

    def context() -> ssl.SSLContext:
        return client_context(Credentials.load(options.certs))

    first = context()
    address = _address(options)
    confined = None if human else confinement(options, participant.isolation, os.environ)
    if confined is not None:
        await settled(confined, certs=options.certs, state=options.state)
    adapter, meta = await client(
        Choice(
            participant,
            council.limits,
            confined,
            state=options.state.absolute(),
            presets=own_presets(options.council),
            model_url=options.model_url,
            cwd=project(participant, options.council),
            brief=prompt,
        )
    )
    role = {"role_label": label, "role_prompt_hash": role_prompt_hash(prompt) if prompt else None}
    meta = meta.model_copy(update=role)
    plan = Plan(
        reg=_registration(council, participant.name, meta),
        system_prompt=system_prompt(prompt, end_token=participant.adapter == PEXPECT),
        address=address,
        context=first,
        renew=context,
        patience=options.connect_timeout,
        give_up_after=options.give_up_after,
        speech_bytes=council.limits.speech_bytes,
        contribution_chars=council.limits.contribution_chars,
        lifeline=options.lifeline,
    )
    vitals = Vitals(say_json if adapter.person is None else _beside(adapter.person, handler), time.monotonic)
    seat = Seat(plan, adapter, vitals)
    vitals.busy_since = lambda: seat.busy_since
    async with anyio.create_task_group() as tasks:
        if (health := place(options.health_file)) is not None:
            tasks.start_soon(report_health, health, vitals.report)
        end = await seat.run()
        handler.setLevel(logging.INFO)
        tasks.cancel_scope.cancel()
    return end


def _is_listed(options: argparse.Namespace) -> bool:
    """Whether the council has a seat for us; says so where it has none."""
    listed = options.name in {seat.name for seat in load_council(options.council).participants}
    if not listed:
        _log_to_stderr(options.name)
        log.info("no seat of this name is in the council file: there is nothing to do")
    return listed


def _role(participant: Participant, council_file: Path) -> tuple[str | None, str | None]:
    """The label and the prompt of the seat's point of view (§5.3)."""
    if participant.role is None:
        return participant.role_label, participant.role_prompt
    role = find_role(participant.role, council_file=council_file)
    return participant.role_label or role.label, role.prompt


def _registration(council: Council, name: str, meta: Meta) -> Reg:
    """What the seat asks for: what the roster says of its name (§7.1, §7.2)."""
    for planned in council.roster.participants:
        if planned.name == name:
            return Reg(
                name=name,
                required=planned.required,
                disconnect_policy=planned.disconnect_policy,
                meta=meta,
            )
    return Reg(name=name, required=name in council.roster.required_names, meta=meta)


def _address(options: argparse.Namespace) -> Address:
    keys = ("host", "control_port", "data_port", "socket_dir")
    ports = Ports.of(**{key: getattr(options, key) for key in keys})
    return Address(ports.host, ports.control_port, ports.data_port, ports.sockets, options.server_name)


def seconds(text: str) -> float:
    """A length of time on the command line."""
    with suppress(ValueError):
        if 0 <= (number := float(text)) <= MAX_SECONDS:
            return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to {MAX_SECONDS:g}")


def _log_to_stderr(name: str) -> logging.StreamHandler[TextIO]:
    handler = logging.StreamHandler(sys.stderr)
    logging.basicConfig(handlers=[handler], level=logging.INFO, format=f"{name}: %(levelname)s: %(message)s")
    return handler


def _beside(person: Person, handler: logging.StreamHandler[TextIO]) -> Say:
    """Have the log written beside what ``person`` types, without what they are told in words already."""
    handler.setStream(person.screen)
    handler.setLevel(logging.WARNING)

    def say(event: Mapping[str, Any]) -> None:
        person.hear(event)
        if not person.owns_stdout:
            say_json(event)

    return say


def say_json(line: Mapping[str, Any]) -> None:
    """One JSON line on standard output, for whoever started the seat and may be gone by now."""
    with suppress(BrokenPipeError):
        sys.stdout.write(orjson.dumps(line).decode() + "\n")
        sys.stdout.flush()
