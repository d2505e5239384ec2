"""Twenty seats that lose one Arbiter at the same moment all come back, spread, and are refused nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from hall import Hall
from scripted_adapter import ScriptedAdapter

from consilium import messages as m
from consilium.credentials import Credentials
from consilium.tls import client_context
from wrapper.link import Address
from wrapper.reconnection import RETURNING
from wrapper.seat import Plan, Seat

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200), pytest.mark.anyio]

SEATS = 20
COUNCIL = "topic: T\ncaps: {max_rounds: 9}\nroster: {mode: dynamic, required_names: [nobody]}\n"


class Life:
    """What one seat said, and when."""

    def __init__(self) -> None:
        self.said: list[tuple[float, dict[str, Any]]] = []

    def say(self, event: Any) -> None:
        self.said.append((anyio.current_time(), dict(event)))

    def when(self, event: str) -> list[float]:
        return [at for at, said in self.said if said["event"] == event]


async def until_all_sit(lives: list[Life], times: int) -> None:
    with anyio.fail_after(60):
        while not all(len(life.when("seated")) >= times for life in lives):  # noqa: ASYNC110 - they tell nobody
            await anyio.sleep(0.05)


async def test_a_storm_of_seats_comes_back_spread_and_is_refused_nothing(tmp_path: Path) -> None:
    with Hall(tmp_path, council=COUNCIL) as hall:
        hall.ports = dict.fromkeys(hall.ports, 0)
        await anyio.to_thread.run_sync(hall.open)
        lives = [Life() for _ in range(SEATS)]
        async with anyio.create_task_group() as tasks:
            for number, life in enumerate(lives):
                context = client_context(Credentials.load(hall.folder / hall.credentials(f"seat{number}")))
                plan = Plan(
                    reg=m.Reg(name=f"seat{number}"),
                    system_prompt="",
                    address=Address("127.0.0.1", hall.ports["control"], hall.ports["data"]),
                    context=context,
                    patience=60,
                    give_up_after=120,
                    speech_bytes=1000,
                    contribution_chars=1000,
                    lifeline=False,
                )
                tasks.start_soon(Seat(plan, ScriptedAdapter(), life.say).run)
            await until_all_sit(lives, 1)
            hall.arbiter.kill()
            await anyio.to_thread.run_sync(hall.open)
            await until_all_sit(lives, 2)
            tasks.cancel_scope.cancel()
    lost = [life.when("waiting")[0] for life in lives]
    back = sorted(life.when("seated")[1] for life in lives)
    assert max(lost) - min(lost) < 1.0, "all of them lost it together"
    assert all("refused" not in said for life in lives for _, said in life.said)
    reasons = {said["reason"] for life in lives for _, said in life.said if said["event"] == "waiting"}
    assert all("connection" in reason for reason in reasons), reasons
    assert not [reason for reason in reasons if "already sits" in reason]
    assert "over_limit" not in hall.arbiter.err.read_text()
    assert back[-1] - back[0] >= RETURNING.first / 4, "they did not come back in one moment"
    assert back[-1] - back[0] <= 2 * RETURNING.longest
