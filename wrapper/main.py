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
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from consilium.credentials import Credentials
from consilium.dumps import forbid_core_dumps
from consilium.errors import UserError
from consilium.health import VARIABLE, place
from consilium.messages import Meta, Reg
from consilium.ports import Ports
from consilium.reporting import report_health
from consilium.settings import load_council
from consilium.tls import client_context
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.clean import clean_line
from wrapper.events import Outcome
from wrapper.isolation.confinement import add_options, confinement
from wrapper.isolation.trial import settled
from wrapper.link import Address
from wrapper.prompts import role_prompt_hash, system_prompt
from wrapper.roles import find_role
from wrapper.sandbox import Bounds
from wrapper.seat import Plan, Seat, log
from wrapper.vitals import Vitals

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from consilium.config import Council, Limits, Participant
    from wrapper.adapters.presets import Preset
    from wrapper.events import End
    from wrapper.isolation.confinement import Confinement

CONNECT_TIMEOUT = 60.0
"""Longer than an Arbiter takes to notice that a seat's old connection is gone: three heartbeats of 15 s."""

GIVE_UP_AFTER = 3600.0

MODEL_URL = "CONSILIUM_MODEL_URL"
"""The variable by which presets know the model server. From outside it names one of somebody's own; the
embedded one comes by ``--model-url``."""

MAX_SECONDS = 7 * 24 * 3600.0

LABEL_CHARS, REASON_CHARS = 200, 1000

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
        epilog="Exit codes: 0 the debate ended or the seat left, 2 wrong usage or configuration, 3 refused "
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
    return own


def main(argv: list[str]) -> int:
    """Run the seat that ``argv`` describes. Raises `UserError` for what cannot be carried out."""
    forbid_core_dumps()
    end = anyio.run(_live, parser().parse_args(argv))
    code = EXIT_CODES[end.outcome]
    log.log(logging.ERROR if code else logging.INFO, "%s", clean_line(end.reason, REASON_CHARS))
    return code


async def _live(options: argparse.Namespace) -> End:
    council = load_council(options.council)
    participant = _participant(council, options.name)
    _log_to_stderr(participant.name)
    label, prompt = _role(participant, options.council)

    def context() -> ssl.SSLContext:
        return client_context(Credentials.load(options.certs))

    first = context()
    address = _address(options)
    confined = confinement(options, participant.isolation, os.environ)
    await settled(confined, certs=options.certs, state=options.state)
    adapter, meta = await client(
        participant,
        council.limits,
        confined,
        state=options.state.absolute(),
        model_url=options.model_url,
        cwd=_cwd(participant, options.council),
    )
    role = {"role_label": label, "role_prompt_hash": role_prompt_hash(prompt) if prompt else None}
    meta = meta.model_copy(update=role)
    plan = Plan(
        reg=_registration(council, participant.name, meta),
        system_prompt=system_prompt(prompt, end_token=False),
        address=address,
        context=first,
        renew=context,
        patience=options.connect_timeout,
        give_up_after=options.give_up_after,
        speech_bytes=council.limits.speech_bytes,
        contribution_chars=council.limits.contribution_chars,
        lifeline=options.lifeline,
    )
    vitals = Vitals(say_json, time.monotonic)
    seat = Seat(plan, adapter, vitals)
    vitals.busy_since = lambda: seat.busy_since
    async with anyio.create_task_group() as tasks:
        if (health := place(options.health_file)) is not None:
            tasks.start_soon(report_health, health, vitals.report)
        end = await seat.run()
        tasks.cancel_scope.cancel()
    return end


def _participant(council: Council, name: str) -> Participant:
    for participant in council.participants:
        if participant.name == name:
            return participant
    known = ", ".join(participant.name for participant in council.participants)
    raise UserError(f"the council file has no participant named {name}", hint=f"it has: {known or 'none'}")


def _role(participant: Participant, council_file: Path) -> tuple[str | None, str | None]:
    """The label and the prompt of the seat's point of view (§5.3)."""
    if participant.role is None:
        return participant.role_label, participant.role_prompt
    role = find_role(participant.role, council_file=council_file)
    return participant.role_label or role.label, role.prompt


async def client(
    participant: Participant,
    limits: Limits,
    confined: Confinement,
    *,
    state: Path,
    model_url: str | None = None,
    cwd: Path | None = None,
) -> tuple[NativeAdapter, Meta]:
    """The seat's client, found to be there, and what the seat says of it. Raises `UserError`.

    ``state`` is the folder of its chat, as an absolute path: the client has another working directory.
    ``model_url`` is where the embedded model is served, ``cwd`` the project of a native harness.
    """
    if participant.adapter != "native":
        raise UserError(
            f"{participant.name}: a seat with adapter: {participant.adapter} cannot be run by this command",
            hint="adapter: native drives a client by its non-interactive mode",
        )
    preset = load_preset(participant.preset)
    _check_model(participant, preset, embedded=bool(model_url))
    environment = {**os.environ, **({MODEL_URL: model_url} if model_url else {})}
    settings = preset.settings_from(environment)
    settings |= {key: value for key in ("model", "effort") if (value := getattr(participant, key))}
    adapter = NativeAdapter(
        preset,
        settings,
        state,
        environment=environment,
        bounds=Bounds(
            overall=limits.turn_seconds,
            first_byte=limits.first_byte_seconds,
            stall=limits.stall_seconds,
        ),
        profile=participant.harness_profile,
        cwd=cwd,
        passed=participant.env,
        confinement=confined,
    )
    values = preset.complete(settings)
    version = await adapter.version()
    if preset.version.is_newer(version):
        tried = preset.version.known_good
        log.warning(
            "%s %s %s; watch its first turns",
            preset.executable,
            clean_line(version, LABEL_CHARS),
            f"is newer than {tried}, the last that was tried with it"
            if tried
            else "was never run with its preset, which is written from its documentation",
        )
    meta = Meta(
        brand=_label(preset.brand),
        model=_label(values.get("model")),
        effort=_label(values.get("effort")),
        adapter=participant.adapter,
        cli_version=_label(version),
        harness_profile=participant.harness_profile,
        isolation=confined.isolation,
        reports_usage=preset.reports_usage,
    )
    return adapter, meta


def _check_model(participant: Participant, preset: Preset, *, embedded: bool) -> None:
    """Refuse to guess what a server of somebody's own serves: the preset's model is the embedded one's."""
    elsewhere = bool(preset.settings_from({MODEL_URL: os.environ.get(MODEL_URL, "")}))
    if elsewhere and not embedded and participant.model is None:
        raise UserError(
            f"{participant.name}: {MODEL_URL} names a model server, but nothing names the seat's model",
            hint="give the participant its `model` in the council file, or a guest's seat --model",
        )


def _cwd(participant: Participant, council_file: Path) -> Path | None:
    """The project in which a native harness works (§3.3.B); a restricted one has a folder of its own."""
    if participant.harness_profile == "native":
        return council_file.absolute().parent / (participant.cwd or "")
    if participant.cwd is not None:
        raise UserError(
            f"{participant.name}: cwd is for harness_profile: native", hint="a restricted client has its own"
        )
    return None


def _label(text: str | None) -> str | None:
    return None if text is None else clean_line(text, LABEL_CHARS)


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


def _log_to_stderr(name: str) -> None:
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format=f"{name}: %(levelname)s: %(message)s")


def say_json(line: Mapping[str, Any]) -> None:
    """One JSON line on standard output, for whoever started the seat and may be gone by now."""
    with suppress(BrokenPipeError):
        sys.stdout.write(orjson.dumps(line).decode() + "\n")
        sys.stdout.flush()
