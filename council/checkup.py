"""What `consilium doctor` finds out of one client, or of one seat of a council file.

Nothing is asked of a provider, unless a turn is tried (`probe`). What is missing is said with the next step,
which can be done as it stands.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import anyio

from consilium.config import HUMAN, PEXPECT, Limits
from consilium.errors import AdapterFault, UserError
from council.builtin import EMBEDDED_PRESET
from wrapper.adapters.choosing import Choice, program, project
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_person, load_preset, own_presets
from wrapper.isolation import launcher
from wrapper.isolation.confinement import PLAIN
from wrapper.login import entry
from wrapper.roles import find_role

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from consilium.config import Participant
    from consilium.messages import Usage
    from wrapper.adapters.presets import Preset

PERSON = "a person"
UNSET = "unset"
"""Stands for a setting in a client that is looked at and not asked."""

PROBE_SECONDS = 180.0
"""How long a tried turn may take."""

PROBE_RULES = "You are asked once, to see whether you can be reached."
PROBE = "Answer with the word ready."


@dataclass(frozen=True, slots=True)
class Trouble:
    """One thing that is missing, or that a person should know, and what to do about it."""

    what: str
    step: str = ""
    weight: Literal["missing", "note"] = "missing"


@dataclass(slots=True)
class Finding:
    """What is known of one client. Empty is unknown."""

    name: str
    preset: str = ""
    program: str = ""
    path: str = ""
    version: str = ""
    known_good: str = ""
    profiles: tuple[str, ...] = ()
    model: str = ""
    login: str = ""
    probe: str = ""
    troubles: list[Trouble] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Whether nothing is missing."""
        return not any(trouble.weight == "missing" for trouble in self.troubles)

    def as_json(self) -> dict[str, Any]:
        """The same for a program."""
        told = {
            name: getattr(self, name)
            for name in (
                *("name", "preset", "program", "path", "version", "known_good", "profiles"),
                *("model", "login", "probe"),
            )
        }
        troubles = [{"what": one.what, "step": one.step, "weight": one.weight} for one in self.troubles]
        return {**told, "usable": self.usable, "troubles": troubles}


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine has for keeping clients apart (§14.2)."""

    landlock: int
    nft: bool
    docker: bool

    @classmethod
    def here(cls) -> Machine:
        """This one."""
        return cls(launcher.abi(), shutil.which("nft") is not None, shutil.which("docker") is not None)

    def sentence(self) -> str:
        """It in one line."""
        landlock = f"Landlock {self.landlock}" if self.landlock > 0 else "no Landlock in the kernel"
        nft = "nft" if self.nft else "no nft"
        return f"{landlock}, {nft}, {'docker' if self.docker else 'no docker'}"


def check_seat(participant: Participant, council: Path, machine: Machine) -> Iterator[Trouble]:
    """What a seat of the file ``council`` lacks beside its client."""
    for name in participant.env:
        if not os.environ.get(name):
            weight: Literal["missing", "note"] = (
                "note" if load_preset(participant.preset).takes_as_login(name) else "missing"
            )  # another login serves as well: whether there is one is looked at
            yield Trouble(
                f"the variable {name} is not set, which env passes on", f"export {name}=...", weight
            )
    if participant.adapter == PEXPECT:
        try:
            load_preset(participant.preset).in_terminal(participant.harness_profile)
        except UserError as error:
            yield Trouble(error.message, error.hint)
    if participant.harness_profile == "native" and participant.adapter != HUMAN:
        folder = project(participant, council)
        if folder is not None and not folder.is_dir():
            yield Trouble(f"cwd: {folder} is not a folder", "make it, or name another in the council file")
    if participant.role is not None:
        try:
            find_role(participant.role, council_file=council)
        except UserError as error:
            yield Trouble(error.message, error.hint)
    if participant.isolation == "strict" and not (machine.landlock > 0 and machine.nft):
        yield Trouble(
            f"isolation: strict, and this machine has {machine.sentence()}",
            "run the seat in its image (docs/deployment.md), or say isolation: relaxed and go without",
        )


async def examine(
    participant: Participant, finding: Finding, *, state: Path | None, council: Path | None, probed: bool
) -> None:
    """Look at the client of ``participant``. ``state`` is its seat's folder, if that is known.

    Without a ``council`` file it is no seat's, and what a seat would set is not missing.
    """
    if participant.adapter == HUMAN:
        load_person(participant.preset, own_presets(council))
        finding.program, finding.login = PERSON, "not needed"
        return
    preset = load_preset(participant.preset, own_presets(council))
    finding.preset, finding.program = preset.name, preset.executable
    finding.known_good, finding.profiles = preset.version.known_good or "", tuple(preset.profiles)
    unset = _unset(preset, participant)
    by_others = council is None or preset.name == EMBEDDED_PRESET
    for name in unset:
        setting = preset.settings[name]
        also = f", or the variable {setting.variable}" if setting.variable else ""
        step = "`consilium up` sets it" if preset.name == EMBEDDED_PRESET else setting.help
        weight: Literal["missing", "note"] = "note" if by_others else "missing"
        finding.troubles.append(Trouble(f"a seat needs the setting {name}{also}", step, weight))
    with tempfile.TemporaryDirectory(prefix="consilium-doctor-", ignore_cleanup_errors=True) as folder:
        try:
            choice = Choice(
                participant,
                Limits(turn_seconds=PROBE_SECONDS),
                PLAIN,
                state=Path(folder) / "seat" if state is None else state,
                cwd=_cwd(participant, council),
            )
            adapter = program(choice, NativeAdapter, preset, dict.fromkeys(unset, UNSET))
            await _examine(preset, adapter, finding, lambda: _way_in(preset, finding, participant, council))
        except UserError as error:
            finding.troubles.append(Trouble(error.message, error.hint))
            return
        finding.model = _model(preset, participant)
        if probed and finding.usable and not unset:
            await probe(adapter, finding)


def _unset(preset: Preset, participant: Participant) -> tuple[str, ...]:
    """The settings that the client needs, and that neither the seat nor the environment gives."""
    given = preset.settings_from(os.environ)
    return tuple(
        name
        for name, setting in preset.settings.items()
        if setting.default is None
        and not setting.may_be_left_out
        and name not in given
        and getattr(participant, name, None) is None
    )


def _cwd(participant: Participant, council: Path | None) -> Path | None:
    if council is not None:
        return project(participant, council)
    return Path.cwd() if participant.harness_profile == "native" else None


async def _examine(
    preset: Preset, adapter: NativeAdapter, finding: Finding, way_in: Callable[[], str]
) -> None:
    finding.path = shutil.which(preset.executable, path=adapter.environment["PATH"]) or ""
    finding.version = await adapter.version()
    if doubt := preset.version.doubt(finding.version):
        finding.troubles.append(Trouble(f"{finding.version} {doubt}", "watch its first turns", "note"))
    found = await entry(preset, adapter)
    state = {True: "yes", False: "no", None: "unknown"}[found.known]
    finding.login = f"{state}: {found.how}"
    if found.known is False:
        finding.troubles.append(Trouble(f"not logged in: {found.how}", way_in()))


def _way_in(preset: Preset, finding: Finding, participant: Participant, council: Path | None) -> str:
    """How to be logged in, in the words that a person can type."""
    assert preset.login is not None
    ways = []
    if preset.login.variables:
        key = preset.login.variables[0]
        named = "" if key in participant.env else ", and name it in the participant's `env`"
        ways.append(f"set {key}{named}")
    if preset.login.argv and participant.harness_profile == "native":
        ways.append(f"`{' '.join((preset.executable, *preset.login.argv))}`")
    elif preset.login.argv:
        ways.append(f"`consilium seat login {finding.name} --council {council or 'FILE'} --state DIR`")
    return "; or ".join(ways)


def _model(preset: Preset, participant: Participant) -> str:
    if "model" not in preset.settings:
        return "the client's own"
    return participant.model or preset.settings["model"].default or "the client's own"


async def probe(adapter: NativeAdapter, finding: Finding) -> None:
    """Have the client take one real turn, and say what came of it and what it cost."""
    began = anyio.current_time()
    try:
        with anyio.fail_after(PROBE_SECONDS):
            await adapter.open(PROBE_RULES)
            answer = await adapter.send_turn(PROBE)
    except AdapterFault as fault:
        finding.troubles.append(Trouble(f"a turn failed: {fault.fault}: {fault.detail}"))
    except TimeoutError:
        finding.troubles.append(Trouble(f"a turn was not done after {PROBE_SECONDS:g} s"))
    else:
        seconds = anyio.current_time() - began
        finding.probe = f"answered {answer.text[:40]!r} after {seconds:.1f} s; {_cost(answer.usage)}"
    finally:
        with anyio.CancelScope(shield=True):
            await adapter.close()


def _cost(usage: Usage | None) -> str:
    if usage is None or usage.tokens_in is None:
        return "it does not say what that cost"
    usd = "" if usage.usd is None else f", ${usage.usd:.4f}"
    return f"{usage.tokens_in} tokens in, {usage.tokens_out} out{usd}"
