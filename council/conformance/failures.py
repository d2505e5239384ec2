"""What goes wrong at the provider, or on the way there, is told as it is and leaves no trace (§6.5, §6.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consilium.messages import Fault, PromptSent
from council.conformance.chats import need_seen
from council.conformance.verdicts import NotApplicable, need, need_fault

if TYPE_CHECKING:
    from consilium.errors import AdapterFault
    from council.conformance.bench import Bench, Room
    from council.conformance.verdicts import Turn

REFUSED = (Fault.CLIENT_ERROR, PromptSent.YES)

TOLD: dict[str, tuple[Fault, PromptSent]] = {
    "400": REFUSED,
    "401": REFUSED,
    "403": REFUSED,
    "404": REFUSED,
    "429": (Fault.QUOTA, PromptSent.YES),
    "500": REFUSED,
    "529": REFUSED,
    "quota": (Fault.QUOTA, PromptSent.YES),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES),
}
"""What becomes of each failure of the provider (docs/adapters.md), unless the client tells less."""

NOWHERE = (Fault.CLIENT_ERROR, PromptSent.NO)
"""What becomes of a turn when nobody is at the endpoint, with the same exception."""

JUDGED = frozenset({*TOLD, "nowhere"})
"""Of what a preset may say that its client tells less."""

AT_FIRST = ("400", "500", "cut", "empty")
"""Those that are tried in a chat that has not begun, too."""

WRONG_KEY = "sk-wrong-key-0987654321"

DETAIL_CHARS = 900

# --- what is played --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failures:
    """One seat through every failure of the provider, some of them before its chat has begun."""

    at_first: tuple[Turn, ...]
    first: Turn
    later: tuple[Turn, ...]
    second: Turn


async def failures(room: Room) -> Failures:
    """Fail, be answered, fail in every way, be answered."""
    async with room.seated() as seat:
        at_first = await seat.ask_all(*(f"begin with <<{act}>>" for act in AT_FIRST))
        first = await seat.ask("first")
        later = await seat.ask_all(*(f"go on with <<{act}>>" for act in TOLD))
        return Failures(at_first, first, later, await seat.ask("second"))


async def unreached(room: Room, how: str) -> Turn:
    """A turn without a key, with a wrong one, or with nobody at the endpoint."""
    ways: dict[str, dict[str, Any]] = {
        "no-key": {"key": None},
        "wrong-key": {"key": WRONG_KEY},
        "nowhere": {"url": "http://127.0.0.1:1"},
    }
    async with room.seated(**ways[how]) as seat:
        return await seat.ask("hello")


# --- what has to hold ------------------------------------------------------------------------------------


async def failures_are_told(bench: Bench) -> dict[str, str]:
    """Each failure of the provider is told as what it is, and says that the prompt was sent, in words."""
    told = await bench.scene(failures)
    for act, turn in zip((*AT_FIRST, *TOLD), (*told.at_first, *told.later), strict=True):
        need_words(need_fault(turn, *expected(bench, act, TOLD[act])))
    return {act: turn.failed.detail for act, turn in zip(TOLD, told.later, strict=True)}


async def failed_turns_leave_no_trace(bench: Bench) -> None:
    """A turn that failed, in whatever way, is not in the chat that goes on."""
    told = await bench.scene(failures)
    for turn, number in ((told.first, 1), (told.second, 2)):
        stayed = [prompt for prompt in turn.last.prompts if "<<" in prompt]
        need(not stayed, f"{turn.shown} was sent together with {stayed}")
        need_seen(turn, number)


async def missing_key_is_said(bench: Bench) -> dict[str, str]:
    """Without its key the client fails, says so, and whether the provider was asked."""
    if bench.tried.key is None:
        raise NotApplicable("the preset names no key: conformance.key")
    turn = await bench.scene(unreached, "no-key")
    fault = need_fault(turn, Fault.CLIENT_ERROR, *([PromptSent.YES] if turn.requests else [PromptSent.NO]))
    need_words(fault)
    return {"no-key": fault.detail}


async def wrong_key_is_not_shown(bench: Bench) -> None:
    """A wrong key is told in the provider's words, and not shown."""
    if bench.tried.key is None:
        raise NotApplicable("the preset names no key: conformance.key")
    turn = await bench.scene(unreached, "wrong-key")
    fault = need_fault(turn, *expected(bench, "401", TOLD["401"]))
    need("does not know this key" in fault.detail, f"it is told as: {fault.detail}")
    need(WRONG_KEY[-10:] not in fault.detail, f"the key is shown: {fault.detail}")


async def nobody_there_was_sent_nothing(bench: Bench) -> None:
    """An endpoint where nobody listens was sent nothing, and the turn says so."""
    if "{url}" not in str((bench.tried.variables, bench.tried.settings)):
        raise NotApplicable("the preset does not say where its endpoint is named: conformance.variables")
    turn = await bench.scene(unreached, "nowhere")
    need_words(need_fault(turn, *expected(bench, "nowhere", NOWHERE)))
    need(not turn.left, f"it left running: {turn.left}")


def expected(bench: Bench, act: str, usual: tuple[Fault, PromptSent]) -> tuple[Fault, PromptSent]:
    """What has to become of ``act``: what is ``usual``, unless the preset says that its client tells less."""
    own = bench.tried.faults.get(act)
    return (own.fault, own.prompt_sent) if own else usual


def need_words(fault: AdapterFault) -> None:
    """Raise `Failed` unless ``fault`` has the client's own words, fit to be shown."""
    words = fault.detail.partition(": ")[2]
    empty = fault.fault is Fault.EMPTY_ANSWER
    need(words or empty, f"it says nothing about why: {fault.detail}")
    need(fault.detail.isprintable(), f"it holds what cannot be printed: {fault.detail!r}")
    need(len(fault.detail) < DETAIL_CHARS, f"it says {len(fault.detail)} characters")
