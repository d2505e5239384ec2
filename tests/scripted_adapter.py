"""A client without a client: a test writes down what each turn shall bring."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

from wrapper.adapters.base import Answer, ParticipantAdapter

if TYPE_CHECKING:
    from consilium.messages import Usage

HANG = "<never answers>"


class ScriptedAdapter(ParticipantAdapter):
    """Answers with the next line of its script; raises it if it is an exception; hangs at `HANG`."""

    def __init__(
        self,
        *script: str | Exception,
        memory_lost: bool = False,
        usage: Usage | None = None,
        refused: tuple[str, ...] = (),
        refuses_to_start: Exception | None = None,
        dies_slowly: float = 0.0,
    ) -> None:
        self.script = deque(script)
        self.usage = usage
        self.refused = refused
        self.refuses_to_start = refuses_to_start
        self.dies_slowly = dies_slowly
        self.lost = memory_lost
        self.system_prompts: list[str] = []
        self.prompts: list[str] = []
        self.life: list[str] = []
        self.busy = False
        self.prompted = anyio.Event()

    @property
    def memory_lost(self) -> bool:
        return self.lost

    async def open(self, system_prompt: str) -> None:
        await self._start("open", system_prompt)

    async def restart(self, system_prompt: str) -> None:
        assert not self.busy, "a restart under a turn"
        await self._start("restart", system_prompt)

    async def _start(self, what: str, system_prompt: str) -> None:
        self.life.append(what)
        self.system_prompts.append(system_prompt)
        if self.refuses_to_start is not None:
            raise self.refuses_to_start

    async def send_turn(self, text: str) -> Answer:
        assert not self.busy, "two turns in one chat"
        self.busy = True
        self.prompts.append(text)
        self.prompted.set()
        self.prompted = anyio.Event()
        try:
            step = self.script.popleft()
            if step == HANG:
                await anyio.sleep_forever()
            if isinstance(step, Exception):
                raise step
            return Answer(step, self.usage, self.refused)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await anyio.sleep(self.dies_slowly)
            self.life.append("killed")
            raise
        finally:
            self.busy = False

    async def close(self) -> None:
        self.life.append("close")
