"""Where a preset is tried: rooms with a provider on loopback, throw-away folders, and seats of one client.

1. A scene is played once in a room of its own, whatever number of checks look at what came of it.
2. Nothing of the person who runs it reaches a client: homes are folders of the room, keys are the
   provider's, and the environment is what `Bench` was given.
3. Whatever happens in a turn is a `Turn`, faults too; a check judges it, and says `Failed`.
"""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import anyio.to_thread

from consilium.errors import AdapterFault, ConsiliumError
from council.conformance.furniture import put
from council.conformance.provider.script import KEY
from council.conformance.provider.stub import Stub
from council.conformance.traces import VARIABLE, Traces
from council.conformance.verdicts import Failed, NotApplicable, Turn
from wrapper.adapters import templates
from wrapper.adapters.interactive import PexpectAdapter
from wrapper.adapters.keeping import kept_chat
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.trying import Conformance
from wrapper.prompts import END_RULE
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from wrapper.adapters.base import ParticipantAdapter
    from wrapper.adapters.parts import ProfileName
    from wrapper.adapters.presets import Preset

    class Factory(Protocol):
        """What makes a seat's adapter; see `NativeAdapter`."""

        def __call__(
            self,
            preset: Preset,
            settings: Mapping[str, str],
            folder: Path,
            *,
            environment: Mapping[str, str],
            bounds: Bounds,
            profile: ProfileName,
            cwd: Path | None,
            passed: Sequence[str],
        ) -> ParticipantAdapter:
            """An adapter that is not open yet. Raises `UserError`."""
            ...


SYSTEM = "You are a sceptic called Zeno. You answer in plain prose."

BOUNDS = Bounds(overall=120)

ADAPTERS: dict[str, Factory] = {"native": NativeAdapter, "pexpect": PexpectAdapter}
"""The ways of driving a client that a preset can be tried in."""

SECRETS = {"CONSILIUM_KEY": "never-this-key", "SOMEBODYS_SECRET": "never-this-secret"}
"""What a wrapper's environment holds, and no client may see."""

HEARD_SECONDS = 60.0
"""How long a client may take to ask its provider."""

T = TypeVar("T")


class Bench:
    """Scenes with one preset, driven in one way. ``environment`` is the wrapper's own, without keys."""

    def __init__(
        self,
        preset: Preset,
        folder: Path,
        environment: Mapping[str, str],
        *,
        adapter: str = "native",
        factory: Factory | None = None,
    ) -> None:
        self.preset = preset
        self.adapter = adapter
        self.tried = preset.conformance or Conformance()
        self.environment = dict(environment)
        self.factory = factory or ADAPTERS[adapter]
        self._folder = folder
        self._played: dict[tuple[object, ...], tuple[object, Exception | None]] = {}

    @property
    def system(self) -> str:
        """The system prompt of every seat; in a terminal it asks for the token of an answer's end (§12)."""
        return SYSTEM if self.adapter == "native" else f"{SYSTEM}\n\n{END_RULE}"

    async def scene(self, play: Callable[..., Awaitable[T]], *choices: str) -> T:
        """What came of ``play(room, *choices)``, which is played once. Raises what it raised."""
        key = (play, *choices)
        if key not in self._played:
            self._played[key] = await self._play(play, choices)
        outcome, problem = self._played[key]
        if problem is not None:
            raise problem.with_traceback(None)
        return cast("T", outcome)

    async def _play(
        self, play: Callable[..., Awaitable[object]], choices: tuple[str, ...]
    ) -> tuple[object, Exception | None]:
        folder = self._folder.joinpath("-".join((play.__name__, *choices)))
        folder.mkdir(parents=True)
        with Stub() as provider:
            try:
                return await play(Room(self, provider, folder), *choices), None
            except (Failed, NotApplicable, ConsiliumError, ExceptionGroup) as raised:
                return None, _verdict(raised)

    def only(self, *, profile: ProfileName) -> None:
        """Raise `NotApplicable` unless the preset has this profile."""
        if profile not in self.preset.profiles:
            raise NotApplicable(f"the preset has no profile {profile}")


def _verdict(raised: Exception) -> Failed | NotApplicable:
    """What a check says of a scene that ``raised``. Raises what is nobody's fault but ours."""
    while isinstance(raised, ExceptionGroup):  # out of a scene that does two things at a time
        raised = raised.exceptions[0]
    if isinstance(raised, Failed | NotApplicable):
        return raised
    if isinstance(raised, ConsiliumError):
        return Failed(str(raised))
    raise raised


class Room:
    """One scene's provider and folders. ``person`` is the home of whoever runs the wrapper."""

    def __init__(self, bench: Bench, provider: Stub, folder: Path) -> None:
        self.bench = bench
        self.preset = bench.preset
        self.provider = provider
        self.folder = folder
        self.person = folder / "person"
        self.traces = Traces()
        self.person.mkdir()
        put(bench.tried.person, self.person)

    def means(self, *, url: str | None = None, key: str | None = KEY) -> dict[str, Any]:
        """A seat's settings, environment and what is passed on, with the provider at ``url``."""
        tried, gaps = self.bench.tried, {"url": url or self.provider.url}
        keys = {tried.key: key} if tried.key and key else {}
        variables = {name: templates.fill(value, gaps) for name, value in tried.variables.items()}
        return {
            "settings": {name: templates.fill(value, gaps) for name, value in tried.settings.items()},
            "environment": {
                **self.bench.environment,
                "HOME": str(self.person),
                **SECRETS,
                **variables,
                **keys,
                **self.traces.env,
            },
            "passed": (VARIABLE, *keys),
        }

    def seat(
        self,
        name: str = "seat",
        *,
        profile: ProfileName = "restricted",
        cwd: Path | None = None,
        bounds: Bounds = BOUNDS,
        **means: str | None,
    ) -> ParticipantAdapter:
        """A seat whose state is in the folder ``name``; each call is another life of its wrapper.

        ``means`` are those of `means`. Raises `UserError`.
        """
        self.bench.only(profile=profile)
        own = self.means(**means)
        settings = own.pop("settings")
        return self.bench.factory(
            self.preset, settings, self.folder / name, bounds=bounds, profile=profile, cwd=cwd, **own
        )

    def project(self) -> Path:
        """An empty project."""
        folder = self.folder / "project"
        folder.mkdir()
        return folder

    @asynccontextmanager
    async def seated(self, name: str = "seat", **choices: Any) -> AsyncIterator[Seated]:
        """An open seat, for one life of its wrapper. Raises `AdapterFault`."""
        adapter = self.seat(name, **choices)
        await adapter.open(self.bench.system)
        try:
            yield Seated(self, name, adapter)
        finally:
            await adapter.close()

    async def heard(self, number: int) -> None:
        """Return as soon as there were that many model requests. Raises `Failed`."""
        try:
            await anyio.to_thread.run_sync(self.provider.wait_for_turns, number, HEARD_SECONDS)
        except TimeoutError as late:
            raise Failed(f"the provider waited for a model request: {late}") from None


class Seated:
    """An open seat of a room."""

    def __init__(self, room: Room, name: str, adapter: ParticipantAdapter) -> None:
        self._room = room
        self._name = name
        self.adapter = adapter

    async def ask(self, prompt: str) -> Turn:
        """Take a turn, and tell what came of it."""
        room = self._room
        before, began = len(room.provider.requests), time.monotonic()
        answer = fault = None
        try:
            answer = await self.adapter.send_turn(prompt)
        except AdapterFault as said:
            fault = said
        return Turn(
            prompt=prompt,
            answer=answer,
            fault=fault,
            requests=tuple(room.provider.requests[before:]),
            left=room.traces.running(),
            kept=self.kept,
            seconds=time.monotonic() - began,
        )

    async def answer(self, prompt: str) -> Turn:
        """Take a turn that has to be answered for the scene to go on. Raises `Failed`."""
        turn = await self.ask(prompt)
        _ = turn.answered
        return turn

    async def fail(self, prompt: str) -> Turn:
        """Take a turn that has to fail for the scene to go on. Raises `Failed`."""
        turn = await self.ask(prompt)
        _ = turn.failed
        return turn

    async def ask_all(self, *prompts: str) -> tuple[Turn, ...]:
        """Take a turn for each of ``prompts``."""
        return tuple([await self.ask(prompt) for prompt in prompts])

    @property
    def kept(self) -> str | None:
        """The chat that the seat keeps."""
        chat = kept_chat(self._room.folder / self._name)
        return chat.id if chat is not None else None
