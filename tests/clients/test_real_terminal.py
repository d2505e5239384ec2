"""The real clients in a terminal of ours (§6.5, §14.5): what their screens show is read by nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import pytest
from leftovers import VARIABLE, Leftovers

from clients.kit import CLIENTS, INSTALLED
from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from council.conformance.bench import Room
from council.conformance.provider.script import KEY
from wrapper.adapters.interactive import PexpectAdapter
from wrapper.prompts import END_TOKEN, PASS, system_prompt
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from pathlib import Path

    from council.conformance.provider.stub import Stub

pytest_plugins = ("clients.fixtures",)
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.clients,
    pytest.mark.timeout(300),
    pytest.mark.xdist_group("terminal"),
]

SYSTEM = system_prompt("You are a sceptic called Zeno.", end_token=True)
BOUNDS = Bounds(overall=90, first_byte=60, stall=60)

PARAGRAPH = " ".join(f"word{number}" for number in range(450))
"""Longer than the terminal is wide."""


class Seats:
    """Seats of one client in a terminal; each call is another life of the wrapper."""

    def __init__(self, name: str, profile: str, stub: Stub, folder: Path, leftovers: Leftovers) -> None:
        self.room = Room(CLIENTS[name].bench(folder), stub, folder)
        self.profile = profile
        self._folder = folder
        self._leftovers = leftovers
        self.project = folder / "project"
        self.project.mkdir()

    def make(self, **choices: Any) -> PexpectAdapter:
        own = self.room.means()
        if self.room.preset.name == "claude":
            # What a person has said to it once, who uses it there.
            known = {
                "hasCompletedOnboarding": True,
                "theme": "dark",
                "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
                "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
            }
            (self.room.person / ".claude.json").write_text(json.dumps(known))
        usual: dict[str, Any] = {
            "environment": own["environment"] | {VARIABLE: self._leftovers.token},
            "bounds": BOUNDS,
            "passed": (VARIABLE, *own["passed"]),
            "profile": self.profile,
            "cwd": self.project if self.profile == "native" else None,
        }
        folder = self._folder / "seat"
        return PexpectAdapter(self.room.preset, own["settings"], folder, **{**usual, **choices})


@pytest.fixture(
    params=[("claude", "restricted"), ("claude", "native"), ("codex", "native")],
    ids="-".join,
)
def seats(request: pytest.FixtureRequest, stub: Stub, tmp_path: Path, leftovers: Leftovers) -> Seats:
    assert INSTALLED.exists()
    name, profile = request.param
    return Seats(name, profile, stub, tmp_path, leftovers)


@pytest.fixture
def restricted(stub: Stub, tmp_path: Path, leftovers: Leftovers) -> Seats:
    return Seats("claude", "restricted", stub, tmp_path, leftovers)


def turns(stub: Stub) -> list[list[str]]:
    """The prompts of each request for an answer; a title is another matter."""
    return [list(heard.prompts) for heard in stub.turns if "title" not in heard.prompts[-1][:200]]


async def test_three_turns_are_one_chat_and_the_answers_are_whole(seats: Seats, stub: Stub) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    said = f"<<say First, {PARAGRAPH}.\n\nSecond {END_TOKEN} quoted, and more.\n\nThird.>>"
    first = await adapter.send_turn(f"[[a quoted {END_TOKEN}]]\n\n{said}")
    assert first.text == f"First, {PARAGRAPH}.\n\nSecond {END_TOKEN} quoted, and more.\n\nThird."
    assert first.usage is not None
    assert first.usage.tokens_out is None
    assert (await adapter.send_turn("<<say>>")).text == PASS
    last = await adapter.send_turn("third question")
    assert last.text.startswith("I have seen 3 user messages; last: (turn ")
    assert last.text.endswith("third question")
    assert END_TOKEN not in last.text
    await adapter.close()
    assert len(turns(stub)[-1]) == 3
    if seats.profile == "restricted":
        assert {heard.tools for heard in stub.turns} == {()}


async def test_a_line_is_text_whatever_it_begins_with(seats: Seats, stub: Stub) -> None:
    hostile = "/help\n!ls\n#x\n@/etc/passwd\n$skill\n--help\n> 1. Yes\n\x1b[201~\r\x03\x03/quit\nlast line"
    adapter = seats.make()
    await adapter.open(SYSTEM)
    assert (await adapter.send_turn(hostile)).text.startswith("I have seen 1 user messages")
    await adapter.close()
    heard = turns(stub)[-1][-1]
    for line in ("/help", "!ls", "#x", "@/etc/passwd", "$skill", "--help", "/quit", "last line"):
        assert line in heard.splitlines()
    assert not any(char in heard for char in "\x1b\x03\r")


async def test_a_provider_that_fails_is_told_in_the_clients_words(seats: Seats) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    with pytest.raises(AdapterFault) as raised:
        await adapter.send_turn("fail <<500>>")
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.YES)
    assert CLIENTS[seats.room.preset.name].words["500"] in raised.value.detail
    await adapter.close()


@pytest.mark.parametrize(
    ("act", "bounds", "fault"),
    [
        ("hang", Bounds(overall=60, first_byte=8), Fault.FIRST_BYTE_TIMEOUT),
        ("hang_midway", Bounds(overall=12), Fault.DEADLINE),
        ("forget", Bounds(overall=60, stall=8), Fault.STALLED),
    ],
)
async def test_no_token_in_time_is_a_fault_and_nothing_is_left(
    seats: Seats, leftovers: Leftovers, act: str, bounds: Bounds, fault: Fault
) -> None:
    adapter = seats.make(bounds=bounds)
    await adapter.open(SYSTEM)
    with pytest.raises(AdapterFault) as raised:
        await adapter.send_turn(f"fail <<{act}>>")
    assert (raised.value.fault, raised.value.prompt_sent) == (fault, PromptSent.MAYBE)
    assert leftovers.none_within(5), leftovers.now()
    await adapter.close()


async def test_a_failed_turn_leaves_no_trace_and_the_chat_outlives_its_wrapper(
    restricted: Seats, stub: Stub
) -> None:
    adapter = restricted.make(bounds=Bounds(overall=60, first_byte=6))
    await adapter.open(SYSTEM)
    await adapter.send_turn("one")
    for act in ("500", "hang"):
        with pytest.raises(AdapterFault):
            await adapter.send_turn(f"fail <<{act}>>")
    with anyio.move_on_after(3):
        await adapter.send_turn("withdrawn <<hang>>")
    await adapter.send_turn("two")
    await adapter.close()
    again = restricted.make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    assert (await again.send_turn("three")).text.startswith("I have seen 3 user messages")
    await again.close()
    assert [prompt.splitlines()[-1] for prompt in turns(stub)[-1]] == ["one", "two", "three"]


async def test_a_chat_that_cannot_be_taken_up_again_is_said_to_be_lost(
    stub: Stub, tmp_path: Path, leftovers: Leftovers
) -> None:
    seats = Seats("codex", "native", stub, tmp_path, leftovers)
    adapter = seats.make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("one")
    await adapter.close()
    again = seats.make()
    await again.open(SYSTEM)
    assert again.memory_lost
    assert (await again.send_turn("two")).text.startswith("I have seen 1 user messages")
    await again.close()
