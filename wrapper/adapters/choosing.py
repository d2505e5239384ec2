"""The adapter that a participant's configuration asks for (§3.3.B), and what its seat says of it.

One factory an adapter. What a preset can say as data stands there; here stands only what differs in kind.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, TypeVar

from consilium.config import HUMAN, PEXPECT
from consilium.errors import UserError
from consilium.messages import MAX_LABEL, Meta
from wrapper.adapters.client import ClientAdapter
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_person, load_preset
from wrapper.clean import clean_line
from wrapper.human.adapter import HumanAdapter
from wrapper.human.choosing import front_for, keys_of
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from consilium.config import Limits, Participant
    from wrapper.adapters.base import ParticipantAdapter
    from wrapper.adapters.interactive import PexpectAdapter
    from wrapper.adapters.presets import Preset
    from wrapper.isolation.confinement import Confinement

    Made = tuple[ParticipantAdapter, Meta]

Program = TypeVar("Program", bound=ClientAdapter)

log = logging.getLogger("consilium.seat")

MODEL_URL = "CONSILIUM_MODEL_URL"
"""The variable by which presets know the model server. From outside it names one of somebody's own; the
embedded one comes by ``--model-url``."""


class Choice:
    """What there is to choose by. Each factory takes what it needs of it.

    ``state`` is the folder of the seat's chat, as an absolute path: the client has another working directory.
    ``presets`` is the folder of a council's own, ``model_url`` where the embedded model is served, ``cwd``
    the project of a native harness, ``brief`` the point of view for who is no program and reads no system
    prompt. A person has no confinement.
    """

    def __init__(
        self,
        participant: Participant,
        limits: Limits,
        confined: Confinement | None,
        *,
        state: Path,
        presets: Path | None = None,
        model_url: str | None = None,
        cwd: Path | None = None,
        brief: str | None = None,
    ) -> None:
        self.participant = participant
        self.limits = limits
        self.confined = confined
        self.state = state
        self.presets = presets
        self.model_url = model_url
        self.cwd = cwd
        self.brief = brief

    @property
    def environment(self) -> dict[str, str]:
        """The wrapper's, with the model server that was named."""
        return {**os.environ, **({MODEL_URL: self.model_url} if self.model_url else {})}


def project(participant: Participant, council_file: Path) -> Path | None:
    """Where a native harness works (§3.3.B); a restricted one has a folder of its own. Raises `UserError`."""
    if participant.harness_profile == "native":
        return council_file.absolute().parent / (participant.cwd or "")
    if participant.cwd is not None:
        raise UserError(
            f"{participant.name}: cwd is for harness_profile: native", hint="a restricted client has its own"
        )
    return None


async def client(choice: Choice) -> Made:
    """The seat's client or person, found to be there, and what the seat says of it. Raises `UserError`."""
    return await FACTORIES[choice.participant.adapter](choice)


async def _native(choice: Choice) -> Made:
    return await _program(choice, NativeAdapter, load_preset(choice.participant.preset, choice.presets))


async def _pexpect(choice: Choice) -> Made:
    """A screen tells no counters, whatever the client tells elsewhere."""
    from wrapper.adapters.interactive import PexpectAdapter  # noqa: PLC0415 - other seats need no emulator

    preset = load_preset(choice.participant.preset, choice.presets)
    adapter, meta = await _program(choice, PexpectAdapter, preset)
    return adapter, meta.model_copy(update={"reports_usage": False})


def program(
    choice: Choice, adapter_class: type[Program], preset: Preset, stand_ins: Mapping[str, str] | None = None
) -> Program:
    """The seat's client, not looked for yet. Raises `UserError`.

    ``stand_ins`` are settings for a client that is looked at and not asked for a turn.
    """
    limits, participant, confined = choice.limits, choice.participant, choice.confined
    assert confined is not None, "a client is always confined in some way"
    return adapter_class(
        preset,
        {**(stand_ins or {}), **_settings(choice, preset)},
        choice.state,
        environment=choice.environment,
        bounds=Bounds(
            overall=limits.turn_seconds,
            first_byte=limits.first_byte_seconds,
            stall=limits.stall_seconds,
        ),
        profile=participant.harness_profile,
        cwd=choice.cwd,
        passed=participant.env,
        confinement=confined,
    )


def _settings(choice: Choice, preset: Preset) -> dict[str, str]:
    settings = preset.settings_from(choice.environment)
    given = {key: getattr(choice.participant, key) for key in ("model", "effort")}
    return settings | {key: value for key, value in given.items() if value}


async def _program(
    choice: Choice, adapter_class: type[NativeAdapter | PexpectAdapter], preset: Preset
) -> Made:
    participant, confined = choice.participant, choice.confined
    assert confined is not None, "a client is always confined in some way"
    _check_model(participant, preset, embedded=bool(choice.model_url))
    adapter = program(choice, adapter_class, preset)
    values = preset.complete(_settings(choice, preset))
    version = await adapter.version()
    if doubt := preset.version.doubt(version):
        said = clean_line(version, MAX_LABEL)
        log.warning("%s %s %s; watch its first turns", preset.executable, said, doubt)
    if unset := [name for name in participant.env if not choice.environment.get(name)]:
        log.warning(
            "%s is not set, which env passes on: without a login of its own, the client cannot be used",
            " and ".join(unset),
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


async def _human(choice: Choice) -> Made:
    """A person has no model, no harness and no isolation, and their turns take no tokens (§3.3.B)."""
    participant = choice.participant
    preset = load_person(participant.preset, choice.presets)
    keys = keys_of(preset, participant)
    front = front_for(keys, os.environ)
    adapter = HumanAdapter(
        front,
        timeout=participant.timeout_s if participant.timeout_s is not None else preset.person.timeout_s,
        brief=choice.brief,
        keys={} if front.waits else keys,
    )
    return adapter, Meta(brand=_label(preset.brand), adapter=HUMAN)


FACTORIES: Mapping[str, Callable[[Choice], Awaitable[Made]]] = {
    "native": _native,
    PEXPECT: _pexpect,
    HUMAN: _human,
}


def _check_model(participant: Participant, preset: Preset, *, embedded: bool) -> None:
    """Refuse to guess what a server of somebody's own serves: the preset's model is the embedded one's."""
    elsewhere = bool(preset.settings_from({MODEL_URL: os.environ.get(MODEL_URL, "")}))
    if elsewhere and not embedded and participant.model is None:
        raise UserError(
            f"{participant.name}: {MODEL_URL} names a model server, but nothing names the seat's model",
            hint="give the participant its `model` in the council file, or a guest's seat --model",
        )


def _label(text: str | None) -> str | None:
    return None if text is None else clean_line(text, MAX_LABEL)
