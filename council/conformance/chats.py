"""One exact chat: over turns, failures and lives of the wrapper (§3.3.B, §6.6)."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.messages import Fault, PromptSent
from council.conformance.bench import BOUNDS, SYSTEM
from council.conformance.furniture import MARKS, furnish, furnish_own
from council.conformance.provider import anthropic
from council.conformance.provider.script import seen
from council.conformance.verdicts import NotApplicable, need, need_fault, need_text
from wrapper.adapters import chats, templates
from wrapper.adapters.keeping import CHAT_FILE
from wrapper.adapters.native import NativeAdapter
from wrapper.prompts import END_RULE, END_TOKEN

if TYPE_CHECKING:
    from pathlib import Path

    from council.conformance.bench import Bench, Room
    from council.conformance.verdicts import Turn
    from wrapper.adapters.parts import ProfileName

QUESTIONS = ("first question", "second question", "third question")

OTHER_DIGITS = str.maketrans("0123456789", "1234567890")

# --- what is played --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Life:
    """A restricted seat over two lives of its wrapper, with everything at hand that it must not pick up.

    ``lost``: whether the second life said that it had lost its memory.
    """

    begun_badly: Turn
    first: Turn
    second: Turn
    failed: Turn
    third: Turn
    lost: bool
    ran: tuple[str, ...]
    """Who had set up the hooks and servers that ran."""

    @property
    def answered(self) -> tuple[Turn, Turn, Turn]:
        """The turns that were answered."""
        return self.first, self.second, self.third


async def life(room: Room) -> Life:
    """Three turns in one chat, one that fails before and one in between, and a wrapper that is restarted."""
    tried, made = room.bench.tried, room.folder / "made-by-what"
    made.mkdir()
    files = {**tried.files, **tried.restricted_files}
    furnish(files, room.person, MARKS["user"], made / "the-person-has-set-up")
    furnish(files, room.folder, MARKS["project"], made / "a-folder-above-has-set-up")
    (room.folder / ".git").mkdir()  # a seat's state may be anywhere, in somebody's project too
    if not tried.takes_its_folder:
        furnish(files, room.folder / "seat" / "work", MARKS["project"], made / "its-folder-has-set-up")
    if tried.ignores_its_folder:
        furnish_own(files, room.folder / "seat" / "home", MARKS["user"], made / "its-own-state-has-set-up")
    async with room.seated() as seat:
        begun_badly = await seat.fail("begin with <<400>>")
        first, second = await seat.answer(QUESTIONS[0]), await seat.answer(QUESTIONS[1])
        failed = await seat.fail("go on with <<400>>")
    async with room.seated() as seat:
        lost = seat.adapter.memory_lost
        third = await seat.answer(QUESTIONS[2])
    return Life(
        begun_badly, first, second, failed, third, lost=lost, ran=tuple(path.name for path in made.iterdir())
    )


async def version(room: Room) -> str:
    """What the client says. Raises `UserError` for one that is too old, or not there."""
    means = room.means()
    seat = NativeAdapter(
        room.preset,
        means.pop("settings"),
        room.folder / "seat",
        bounds=BOUNDS,
        profile=next(iter(room.preset.profiles)),
        **means,
    )
    return await seat.version()


async def apart(room: Room) -> tuple[Turn, ...]:
    """Two seats of the same client, one after the other and again."""
    async with room.seated("one") as one, room.seated("two") as two:
        return await one.ask("I am one"), await two.ask("I am two"), await one.ask("I am one still")


@dataclass(frozen=True, slots=True)
class Gone:
    """A chat that is not there any more, asked for in the same life and in the next.

    ``lost``: whether the next life said that it had lost its memory.
    """

    after: Turn
    lost: bool
    later: Turn


async def gone(room: Room) -> Gone:
    """Take away everything that there is of the chat."""
    async with room.seated() as seat:
        kept = (await seat.answer("first")).kept
        need(kept, "the seat keeps no chat after its first answer")
        for path in _everything_of(room, kept or ""):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        after = await seat.ask("second")
    async with room.seated() as seat:
        return Gone(after, seat.adapter.memory_lost, await seat.ask("third"))


async def unknown(room: Room, profile: ProfileName) -> tuple[bool, Turn]:
    """Another id than the seat's: whether its loss was said, and a turn after that."""
    cwd = room.project() if profile == "native" else None
    async with room.seated(profile=profile, cwd=cwd) as seat:
        await seat.answer("first")
    file = room.folder / "seat" / CHAT_FILE
    kept = json.loads(file.read_bytes())
    other = kept["id"].translate(OTHER_DIGITS)
    if other == kept["id"]:
        raise NotApplicable(f"the id {other} holds no digit that could be changed")
    file.write_text(json.dumps({**kept, "id": other}))
    async with room.seated(profile=profile, cwd=cwd) as seat:
        return seat.adapter.memory_lost, await seat.ask("second")


def _everything_of(room: Room, chat: str) -> list[Path]:
    """What there is of a chat in the client's folder: what proves that it exists, what is called after it."""
    home = room.folder / "seat" / "home"
    values = {**room.preset.complete(room.means()["settings"]), "home": str(home), "id": chat}
    # A database has files beside it, of the same name and more.
    proofs = [*home.glob(f"{templates.fill(room.preset.state.proof, values)}*")]
    need(proofs, f"no file in the client's folder fits state.proof for the chat {chat}")
    return sorted({*proofs, *home.rglob(f"*{chat}*")}, reverse=True)


# --- what has to hold ------------------------------------------------------------------------------------


async def version_is_known(bench: Bench) -> dict[str, str]:
    """The client is of a version that its preset was tried with."""
    told, rule = await bench.scene(version), bench.preset.version
    doubt = rule.doubt(told)
    need(not doubt, f"{told} {doubt}")
    return {"version": told}


async def three_turns_are_one_chat(bench: Bench) -> None:
    """Three turns, over two lives of the wrapper, are one chat: the third request carries the first two."""
    told = await bench.scene(life)
    for number, turn in enumerate(told.answered, 1):
        need_seen(turn, number)
    said = [(role, bare(text)) for role, text in told.third.last.said]
    expected = []
    for turn, question in zip(told.answered, QUESTIONS, strict=True):
        expected += [("user", question), ("assistant", turn.answered.text)]
    need(said == expected[:-1], f"the third request carried {said}")
    need(not told.lost, "the second life of the wrapper had lost its memory")


async def system_prompt_is_sent(bench: Bench) -> None:
    """Every request carries the system prompt."""
    for turn in (await bench.scene(life)).answered:
        need(SYSTEM in str(turn.requests[-1].body), f"it is not in the request of {turn.prompt!r}")


async def chat_is_named_exactly(bench: Bench) -> dict[str, str]:
    """The seat keeps the exact id of its chat, the same or that of a copy, as the preset says."""
    told, rule = await bench.scene(life), bench.preset.chat
    ids = [turn.kept for turn in told.answered]
    for chat in ids:
        need(chats.is_id(rule, chat), f"{chat!r} is not what the preset says of an id")
    expected = 3 if rule.turn == "fork" and bench.adapter == "native" else 1
    need(len(set(ids)) == expected, f"chat.turn is {rule.turn}, and the ids were {ids}")
    return {"ids": ", ".join(str(chat) for chat in ids)}


async def id_is_kept_after_success_only(bench: Bench) -> None:
    """An id is kept when a turn has succeeded, and not before."""
    told = await bench.scene(life)
    begun = told.begun_badly
    need(begun.kept is None, f"{begun.kept} was kept after a first turn that failed")
    need(told.first.kept, "nothing was kept after the first answer")
    need(told.failed.kept == told.second.kept, "a turn that failed changed the id")


async def nothing_else_is_asked(bench: Bench) -> None:
    """A turn is one request of the model, and nothing else is asked of the provider."""
    for turn in (await bench.scene(life)).answered:
        asked = [f"{request.method} {request.path}" for request in turn.requests]
        need(len(turn.heard) == len(asked) == 1, f"{turn.prompt!r} made {asked}")


async def usage_is_the_turns_own(bench: Bench) -> dict[str, str]:
    """What a turn cost is told, and is that turn's alone, also after a failure and a restart."""
    told = (await bench.scene(life)).answered
    usages = [turn.answered.usage for turn in told]
    places = bench.preset.answer
    if bench.adapter != "native" or not bench.preset.reports_usage:
        raise NotApplicable("the client does not tell what a turn cost")
    for number, (turn, usage) in enumerate(zip(told, usages, strict=True), 1):
        written = 7 if anthropic.PATH.search(turn.requests[-1].path.partition("?")[0]) else 0
        expected = {"tokens_in": 100 + number + 11 + written, "tokens_out": 13, "tokens_cached": 11}
        for name, value in expected.items():
            said = getattr(usage, name)
            told_of = bool(places.counted(name))  # type: ignore[arg-type]
            need(said == (value if told_of else None), f"turn {number}: {name} is {said}, not {value}")
        need(usage and usage.model in (None, turn.last.model), f"turn {number}: the model is {usage}")
    if places.usd is None:
        return {}
    dollars = [usage.usd or 0.0 for usage in usages if usage]
    need(0 < dollars[2] < 1.5 * dollars[0], f"the turns cost {dollars} dollars")
    return {"usd": " ".join(f"{one:.9f}" for one in dollars)}


async def seats_do_not_hear_each_other(bench: Bench) -> None:
    """Two seats of one client never hear each other."""
    one, two, again = await bench.scene(apart)
    for turn, number in ((one, 1), (two, 1), (again, 2)):
        need_seen(turn, number)


async def chat_that_is_gone_is_said(bench: Bench) -> None:
    """A chat that is gone fails the turn with nothing sent, and is told of in the wrapper's next life too."""
    told = await bench.scene(gone)
    _need_refusal(told.after)
    if not told.lost:
        _need_refusal(told.later)


async def unknown_id_begins_no_chat(bench: Bench) -> None:
    """An unknown id is never answered by a new chat without a word, in any profile."""
    for profile in bench.preset.profiles:
        lost, turn = await bench.scene(unknown, profile)
        if not lost:
            _need_refusal(turn)


def _need_refusal(turn: Turn) -> None:
    need_fault(turn, Fault.SESSION_MISMATCH, PromptSent.NO)
    need(not turn.requests, f"{turn.shown} was sent, into a chat that nobody knows")


def need_seen(turn: Turn, number: int) -> None:
    """Raise `Failed` unless the turn was answered as the chat's ``number``-th, by who was asked just that."""
    _ = turn.answered
    heard = turn.last.prompts[-1]
    need_text(turn, seen(number, heard))
    need(bare(heard) == turn.prompt, f"{turn.shown} arrived as {heard[:100]!r}")


def bare(text: str) -> str:
    """What was asked or answered, without what an adapter puts ahead of it or takes away behind it."""
    text = _MARK.sub("", text.strip()).removesuffix(END_TOKEN)
    return text.removeprefix(SYSTEM).strip().removeprefix(END_RULE).strip()


_MARK = re.compile(r"^\(turn [0-9a-f]{8}\)\s+")
"""How a turn is named on a client's screen."""
