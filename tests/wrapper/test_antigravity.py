"""The preset `antigravity`, with a stand-in after the documentation of a client that nobody here has run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import SYSTEM, chat_of, fault_of, seat_maker

from consilium.errors import UserError
from consilium.messages import Fault, PromptSent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter

pytestmark = pytest.mark.anyio


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return seat_maker(Leftovers(), tmp_path, "antigravity", {})


@pytest.fixture
async def seat(make: Make, tmp_path: Path) -> AsyncIterator[NativeAdapter]:
    home = {"HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    adapter = make(profile="native", cwd=tmp_path, environment={**Leftovers().env, **home})
    await adapter.open(SYSTEM)
    yield adapter
    await adapter.close()


def test_there_is_no_restricted_profile_since_nothing_takes_its_tools_away(make: Make) -> None:
    with pytest.raises(UserError, match="antigravity has no harness profile restricted\n  it has: native"):
        make(passed=(VARIABLE,))


async def test_turns_are_one_conversation_by_its_exact_id(seat: NativeAdapter, tmp_path: Path) -> None:
    first = await seat.send_turn("one")
    assert first.text == f"Heard 1 turns, the last being {SYSTEM}\n\none"
    kept = chat_of(tmp_path / "seat")["id"]
    assert (await seat.send_turn("/two")).text == "Heard 2 turns, the last being /two"
    assert chat_of(tmp_path / "seat")["id"] == kept


async def test_what_a_turn_costs_is_unknown(seat: NativeAdapter) -> None:
    usage = (await seat.send_turn("one")).usage
    assert usage is not None
    assert (usage.tokens_in, usage.tokens_out, usage.usd, usage.model) == (None, None, None, "m")


FAULTS = {
    "signed_out": (Fault.CLIENT_ERROR, PromptSent.NO, "authentication required"),
    "quota": (Fault.QUOTA, PromptSent.YES, "Individual quota reached"),
    "denied": (Fault.EMPTY_ANSWER, PromptSent.YES, "gave an empty answer"),
    "another": (Fault.SESSION_MISMATCH, PromptSent.YES, "answered in the chat"),
}


@pytest.mark.parametrize("act", FAULTS)
async def test_what_does_not_answer_is_a_fault(seat: NativeAdapter, act: str) -> None:
    await seat.send_turn("one")
    kind, sent, words = FAULTS[act]
    fault = await fault_of(seat, f"<<{act}>>")
    assert (fault.fault, fault.prompt_sent) == (kind, sent), fault.detail
    assert words in fault.detail
    assert fault.resets_at == ("in 34m13s" if act == "quota" else None)


async def test_a_prompt_that_would_be_cut_is_not_sent(seat: NativeAdapter) -> None:
    fault = await fault_of(seat, "x" * 190_000)
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO)
