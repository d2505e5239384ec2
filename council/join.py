"""`consilium join`: take a seat in a council that is held elsewhere, with a bundle and no council file.

Exit codes: 0 the debate ended, or the seat left; 2 the command cannot be carried out; 3 the Arbiter refused
the seat; 4 it was not reached, or lost for good; 1 anything else. ``--check``: 0 all is well, 1 it is not.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from pydantic import ValidationError

from consilium import passphrase
from consilium.bundle import open_bundle
from consilium.certificate import validity
from consilium.config import HUMAN, Limits, Participant
from consilium.console import printable
from consilium.credentials import Credentials
from consilium.dumps import forbid_core_dumps
from consilium.errors import UserError
from consilium.messages import Reg
from consilium.ports import Ports
from consilium.problems import describe
from consilium.tls import client_context
from council.join_check import Found, Guest, remedy, steps
from council.join_words import parser
from wrapper.adapters.choosing import Choice, client
from wrapper.adapters.keeping import CHAT_FILE, write_whole
from wrapper.clean import clean_text
from wrapper.human.choosing import with_person_options
from wrapper.isolation.confinement import confinement
from wrapper.isolation.trial import settled
from wrapper.link import Address
from wrapper.main import EXIT_CODES, say_json
from wrapper.prompts import role_prompt_hash, system_prompt
from wrapper.roles import MAX_PROMPT_CHARS, find_role
from wrapper.seat import Plan, Seat, log
from wrapper.telling import Teller

if TYPE_CHECKING:
    import argparse
    import ssl
    from collections.abc import Iterator, Mapping, Sequence

    from consilium.messages import Meta
    from wrapper.adapters.base import ParticipantAdapter, Person
    from wrapper.events import End

DEBATE_FILE = "debate"
"""Where the id of the debate is kept that the chat beside it belongs to."""

TURN_SECONDS = 7 * 24 * 3600.0
"""The client's own bound on a turn: none in effect, for each TURN_START brings the council's."""


def main(argv: Sequence[str]) -> int:
    """Take the seat, or check whether that could be done. Raises `UserError`."""
    forbid_core_dumps()
    return Join(parser().parse_args(argv)).run()


class Join:
    """One call of the command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._teller = Teller()
        self._handler = logging.StreamHandler(sys.stderr)
        self._person: Person | None = None
        self._note: Path

    def run(self) -> int:
        """Carry the command out; return the exit code. Raises `UserError`."""
        options = self._options
        _check_host(options.host)
        ports = Ports.of(host=options.host, control_port=options.control_port, data_port=options.data_port)
        address = Address(ports.host, ports.control_port, ports.data_port, server_name=options.server_name)
        participant, role = _participant(options), _role(options)
        guest = self._guest()
        identity = guest.identity(_now())
        life = validity(guest.der, _now()).sentence
        self._found(Found(ok=True, sentence=f"bundle: {identity.subject} of {identity.trust_domain}, {life}"))
        with self._warnings():
            return anyio.run(self._join, participant, role, guest, address)

    def _guest(self) -> Guest:
        options = self._options
        prompt = f"Passphrase of {options.bundle}"
        secret = passphrase.source(options.passphrase_file, os.environ, prompt=prompt)
        with open_bundle(options.bundle, secret) as credentials:
            nameless = client_context(credentials)
            nameless.check_hostname = False
            return Guest(credentials.leaf(), client_context(credentials), nameless)

    async def _join(
        self, participant: Participant, role: tuple[str | None, str | None], guest: Guest, address: Address
    ) -> int:
        label, prompt = role
        folder = await anyio.to_thread.run_sync(_state, self._options, address)
        confined = None
        if participant.adapter != HUMAN:
            confined = confinement(self._options, None, os.environ)
            await settled(confined, certs=self._options.bundle, state=folder)
        limits = Limits(turn_seconds=TURN_SECONDS)
        adapter, meta = await client(Choice(participant, limits, confined, state=folder, brief=prompt))
        said = f"client: {meta.brand} {meta.cli_version}" + (f", model {meta.model}" if meta.model else "")
        self._found(Found(ok=True, sentence=said if confined else "a person: you, at this terminal"))
        if self._options.check:
            return await self._check(guest, address)
        hashed = role_prompt_hash(prompt) if prompt else None
        meta = meta.model_copy(update={"role_label": label, "role_prompt_hash": hashed})
        self._note = folder / DEBATE_FILE
        plan = self._plan(meta, system_prompt(prompt, end_token=False), guest, address)
        if await anyio.Path(folder / CHAT_FILE).exists():
            plan = replace(plan, debate_id=_kept(self._note))
            kept = f"chat: goes on with the one in {folder}"
            self._found(Found(ok=True, sentence=kept))
        return await self._sit(plan, adapter, guest)

    async def _check(self, guest: Guest, address: Address) -> int:
        """Look, without taking the seat."""
        async for found in steps(guest, address, _now()):
            self._found(found)
            if not found.ok:
                return 1
        name = self._options.name
        self._found(Found(ok=True, sentence=f"whether {name} may sit there shows when it takes its seat"))
        return 0

    def _plan(self, meta: Meta, prompt: str, guest: Guest, address: Address) -> Plan:
        options = self._options
        return Plan(
            reg=Reg(name=options.name, disconnect_policy=options.disconnect_policy, meta=meta),
            system_prompt=prompt,
            address=address,
            context=guest.context,
            renew=self._renewed if options.bundle.is_dir() else None,
            patience=options.connect_timeout,
            give_up_after=options.give_up_after,
            speech_bytes=Limits().speech_bytes,
            contribution_chars=Limits().contribution_chars,
            lifeline=False,
        )

    def _renewed(self) -> ssl.SSLContext:
        """A folder may hold a renewed certificate by now; a file would ask for its passphrase again."""
        return client_context(Credentials.load(self._options.bundle))

    async def _sit(self, plan: Plan, adapter: ParticipantAdapter, guest: Guest) -> int:
        if adapter.person is not None:
            self._person = adapter.person
            self._handler.setStream(adapter.person.screen)
        end = await Seat(plan, adapter, self._say).run()
        code = EXIT_CODES[end.outcome]
        hint = ""
        if end.objection is not None:
            hint = await remedy(end.objection, guest, plan.address, _now())
        if not self._options.json:
            self._end(end, hint, failed=bool(code))
        elif hint:
            say_json({"event": "hint", "hint": hint})
        return code

    # --- what is said --------------------------------------------------------------------------------

    @contextmanager
    def _warnings(self) -> Iterator[None]:
        """What the seat warns of belongs between the lines that it says."""
        handler = self._handler
        stamped = logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S")
        handler.setFormatter(logging.Formatter("%(message)s") if self._options.json else stamped)
        handler.setLevel(logging.WARNING)
        log.addHandler(handler)
        try:
            yield
        finally:
            log.removeHandler(handler)

    def _found(self, found: Found) -> None:
        """One step before there is a seat."""
        if self._options.json:
            say_json({"event": "found", "ok": found.ok, "sentence": found.sentence, "hint": found.hint})
            return
        hint = f"\n  {found.hint}" if found.hint else ""
        _write(f"{'ok' if found.ok else 'no'}  {found.sentence}{hint}")

    def _say(self, event: Mapping[str, Any]) -> None:
        if event.get("debate_id"):
            with suppress(OSError):  # A full disk will be told of the chat; without a note, the chat is kept.
                write_whole(self._note, str(event["debate_id"]).encode())
        if self._person is not None:
            self._person.hear(event)
        if self._options.json:
            say_json(event)
        if self._options.json or self._person is not None:
            return
        for line in self._teller.told(event):
            _write(f"{time.strftime('%H:%M:%S')} {line}")

    def _end(self, end: End, hint: str, *, failed: bool) -> None:
        reason = end.reason.partition(". ")[0] if hint else end.reason
        _write(f"{time.strftime('%H:%M:%S')} {reason}", *([f"  {hint}"] if hint else []), failed=failed)


def _write(*lines: str, failed: bool = False) -> None:
    """Show ``lines``; whoever read them may be gone."""
    stream = sys.stderr if failed else sys.stdout
    with suppress(BrokenPipeError):
        stream.write("".join(printable(line).rstrip("\n") + "\n" for line in lines))
        stream.flush()


def _now() -> float:
    return time.time()  # noqa: TID251 - a certificate's time is told by this machine's clock


def _check_host(host: str) -> None:
    """Refuse what is no host, before a name server is asked for it. Raises `UserError`."""
    if "/" in host:
        raise UserError(f"{host} is not a host", hint="give the name or the address alone, without https://")
    if ":" in host:
        with suppress(ValueError):
            ipaddress.IPv6Address(host)
            return
        raise UserError(f"{host} is not a host", hint="give the ports with --control-port and --data-port")


def _participant(options: argparse.Namespace) -> Participant:
    try:
        participant = Participant(
            name=options.name,
            preset=options.preset,
            model=options.model,
            effort=options.effort,
            role=options.role,
            role_label=options.role_label,
            env=tuple(options.env),
        )
    except ValidationError as error:
        raise UserError(f"--{describe(error.errors(include_url=False)[0])}") from None
    return with_person_options(participant, options)


def _role(options: argparse.Namespace) -> tuple[str | None, str | None]:
    """The label and the prompt of the seat's point of view. Raises `UserError`."""
    if options.role is not None:
        role = find_role(options.role)
        return options.role_label or role.label, role.prompt
    file: Path | None = options.role_prompt_file
    if file is None:
        return options.role_label, None
    try:
        prompt = clean_text(file.read_text("utf-8")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read as text: {error}") from error
    if not 0 < len(prompt) <= MAX_PROMPT_CHARS:
        raise UserError(f"{file} must hold 1 to {MAX_PROMPT_CHARS} characters, and holds {len(prompt)}")
    return options.role_label, prompt


def _state(options: argparse.Namespace, address: Address) -> Path:
    """The folder of the seat's chat: one a council and a name, unless it was given. Raises `UserError`."""
    folder: Path = options.state or _state_home() / f"{address.host}-{address.control_port}" / options.name
    folder = folder.absolute()
    if options.new_chat and folder.exists():
        aside = folder.with_name(f"{folder.name}.{time.strftime('%Y-%m-%d-%H%M%S')}")
        try:
            folder.rename(aside)
        except OSError as error:
            raise UserError(f"{folder} cannot be put aside: {error.strerror}") from error
    return folder


def _kept(note: Path) -> str | None:
    """The debate that the chat beside ``note`` belongs to, if that was ever known."""
    with suppress(OSError, UnicodeDecodeError):
        return note.read_text("utf-8").strip() or None
    return None


def _state_home() -> Path:
    """Where programs keep what is neither configuration nor a document (XDG)."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return home / "consilium"
