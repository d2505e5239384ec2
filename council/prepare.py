"""From the command line of `consilium up` to what is to be held: all refusals, before anything is running."""

from __future__ import annotations

import errno
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from consilium.config import HUMAN, PEXPECT
from consilium.errors import UserError
from consilium.naming import MOMENT
from consilium.ports import Ports
from consilium.settings import check_council, load_council
from council import builtin
from council.builtin import EMBEDDED_PRESET
from council.model import model_file
from council.startup import HOST, MODEL_URL, Job, speaks_openai
from council.workspace import Workspace, default_folder
from pki.terms import CA_FOLDER
from wrapper.adapters.choosing import project
from wrapper.adapters.presets import load_preset, own_presets
from wrapper.roles import find_role

if TYPE_CHECKING:
    import argparse

    from consilium.config import Council

DEBATES = Path("debates")
"""Where debates are kept unless --dir says otherwise: in the folder in which `up` is run."""

PORTS = ("control", "data", "admin", "metrics")


def prepare(options: argparse.Namespace) -> Job:
    """Check everything, then make the debate's folder. Raises `UserError`."""
    council = _council(options)
    _check_seats(council, own_presets(options.file))
    council = _with_projects(council, options.file)
    roles = [
        find_role(seat.role, council_file=options.file).path for seat in council.participants if seat.role
    ]
    given = {f"{name}_port": getattr(options, f"{name}_port") for name in PORTS}
    ports = Ports(**{key: port for key, port in given.items() if port is not None})
    _check_ports(ports)
    endpoint = os.environ.get(MODEL_URL) or None
    if endpoint is not None:
        _check_models(council, endpoint)
    elif speaks_openai(council):
        model_file()
    moment = time.strftime(MOMENT)
    folder = options.dir or default_folder(DEBATES, time=moment, topic=council.topic)
    return Job(council, ports, Workspace.create(folder, council, roles, own_presets(options.file)), endpoint)


def _council(options: argparse.Namespace) -> Council:
    overrides = _overrides(options)
    if options.file is None:
        return check_council(builtin.tree(_seats(options)), overrides, name=builtin.NAME)
    council = load_council(options.file, overrides)
    if options.seats is None and options.roles is None:
        return council
    if council.participants:
        raise UserError(
            f"{options.file} names its own participants",
            hint="leave out --seats and --roles, or leave out the file",
        )
    return load_council(options.file, {**overrides, "participants": _seats(options)})


def _with_projects(council: Council, file: Path | None) -> Council:
    """``council`` with every project named in full, as it is seen from ``file``.

    Seats read a copy, which lies among the debate's keys: no client shall work there. Raises `UserError`.
    """
    if file is None:
        return council
    seats = []
    for seat in council.participants:
        folder = project(seat, file)
        if folder is not None and not folder.is_dir():
            raise UserError(
                f"{seat.name}: cwd: {folder} is not a folder",
                hint="make it, or name another: cwd is seen from the council file",
            )
        seats.append(seat if folder is None else seat.model_copy(update={"cwd": str(folder)}))
    return council.model_copy(update={"participants": tuple(seats)})


def _seats(options: argparse.Namespace) -> list[dict[str, Any]]:
    roles = None if options.roles is None else [role.strip() for role in options.roles.split(",")]
    chosen = builtin.choose_roles(options.seats, roles)
    for role in chosen:
        find_role(role, council_file=options.file)
    return builtin.seats_for(chosen)


def _overrides(options: argparse.Namespace) -> dict[str, Any]:
    given: dict[str, Any] = {"topic": options.topic, "rebuttal_rounds": options.rebuttals}
    caps = {key: getattr(options, key) for key in ("max_rounds", "max_tokens", "max_seconds")}
    given["caps"] = {key: value for key, value in caps.items() if value is not None}
    return {key: value for key, value in given.items() if value not in (None, {})}


def _check_seats(council: Council, presets: Path | None) -> None:
    seated = {seat.name for seat in council.participants}
    if not seated:
        raise UserError("nobody is to be seated", hint="name participants in the file, or give --seats N")
    if CA_FOLDER in seated:
        raise UserError(
            f"a seat cannot be called {CA_FOLDER} here: the folder {CA_FOLDER} is the authority's",
            hint="give the participant another name",
        )
    if others := [f"{seat.name} ({seat.adapter})" for seat in council.participants if seat.adapter == HUMAN]:
        raise UserError(
            f"`consilium up` seats clients, which {', '.join(others)} is not",
            hint="take them out of the file, or hold it in processes of its own: docs/human.md",
        )
    for seat in council.participants:
        preset = load_preset(seat.preset, presets)
        if seat.adapter == PEXPECT:
            preset.in_terminal(seat.harness_profile)
    _check_variables(council)
    if strangers := sorted(council.roster.awaited - seated):
        raise UserError(
            f"the roster waits for {', '.join(strangers)}, which participants does not name",
            hint="add the participant, or take the name out of the roster",
        )
    planned = {seat.name for seat in council.roster.participants}
    if council.roster.mode == "static" and (uninvited := sorted(seated - planned)):
        raise UserError(
            f"participants names {', '.join(uninvited)}, which the static roster does not admit",
            hint="add the name under roster.participants, or leave that list out",
        )


def _check_variables(council: Council) -> None:
    """Refuse a seat whose key is not there: its client would fail its first turn, and end the debate.

    A native client may have its person's login in the place of a key.
    """
    unset = {}
    for seat in council.participants:
        may_lack = load_preset(seat.preset).takes_as_login if seat.harness_profile == "native" else None
        names = [name for name in seat.env if not (os.environ.get(name) or (may_lack and may_lack(name)))]
        if names:
            unset[seat.name] = " and ".join(names)
    if unset:
        told = ", ".join(f"{names} (env of {seat})" for seat, names in unset.items())
        raise UserError(
            f"there is no value for {told}",
            hint="export it, or take it out of env; `consilium doctor --council FILE` looks at every seat",
        )


def _check_models(council: Council, endpoint: str) -> None:
    """Refuse to guess what a server of the person's own serves: the record would name a model untruly."""
    nameless = [
        seat.name for seat in council.participants if seat.preset == EMBEDDED_PRESET and not seat.model
    ]
    if nameless:
        raise UserError(
            f"{MODEL_URL} names the server {endpoint}, but nothing names the model of {', '.join(nameless)}",
            hint="give each of these participants its `model` in a council file (-f), or unset the variable",
        )


def _check_ports(ports: Ports) -> None:
    """Refuse ports that cannot be had, all in one message."""
    numbers = {name: port for name in PORTS if (port := getattr(ports, f"{name}_port")) is not None}
    for name, port in numbers.items():
        others = [other for other in numbers if other != name and numbers[other] == port != 0]
        if others:
            raise UserError(f"{name} and {others[0]} cannot both have port {port}")
    refused = {name: why for name, port in numbers.items() if (why := _refused(port))}
    if refused:
        told = (f"port {numbers[name]} for {name} {why}" for name, why in refused.items())
        options = ", ".join(f"--{name}-port N" for name in refused)
        raise UserError(", and ".join(told), hint=f"give another with {options}; 0 takes any free one")


def _refused(port: int) -> str | None:
    """Why nothing can listen on ``port``; None when something can."""
    with socket.socket() as probe:
        # As the listener does: connections that are still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            return "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used: {error.strerror}"
    return None
