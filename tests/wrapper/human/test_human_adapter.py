"""A person's turns: what is sent, what is a skip, what is a failure, and that no text is ever lost."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from front_double import PATIENCE, FrontDouble
from statuses import seat, status

from consilium import messages as m
from consilium.errors import AdapterFault
from wrapper import events
from wrapper.adapters.base import Answer, Turn
from wrapper.events import News
from wrapper.human import adapter as human
from wrapper.human.adapter import HumanAdapter
from wrapper.human.commands import Command
from wrapper.human.front import Ended, Mood, Pressed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

pytestmark = pytest.mark.anyio

ME = "me_AB12CD34"


class Table:
    """A person who sits down, the seat that they bother, and what became of their turn."""

    def __init__(self, *, waits: bool = False, **choices: Any) -> None:
        self.front = FrontDouble(waits=waits)
        self.adapter = HumanAdapter(self.front, **choices)
        self.asked: list[events.PersonEvent] = []
        self.answers: list[Answer | AdapterFault] = []
        self.scope = anyio.CancelScope()

    async def send(self, item: events.PersonEvent) -> None:
        self.asked.append(item)

    async def turn(self, turn_id: int = 1, seconds: float = 60.0, **changes: Any) -> None:
        """Have a turn; what becomes of it is the last of ``answers``."""
        context = m.Context(
            turn_id=turn_id,
            phase=m.Phase.OPENING,
            topic="Wrap it?",
            delta=(m.DeltaEntry(speaker="ada_0A1B2C3D", text="I doubt it."),),
        )
        bounds = {"limit_chars": 500, "speech_bytes": 100} | changes
        with anyio.CancelScope() as self.scope:
            try:
                turn = Turn(context, anyio.current_time() + seconds, **bounds)
                self.answers.append(await self.adapter.take_turn(turn))
            except AdapterFault as fault:
                self.answers.append(fault)

    async def during(
        self, *doings: Awaitable[object], turn_id: int = 1, **changes: Any
    ) -> Answer | AdapterFault:
        """What becomes of a turn in which these happen."""
        before = len(self.answers)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: self.turn(turn_id, **changes))
            await self.invited(Mood.TURN)
            for doing in doings:
                await doing
            await until(lambda: len(self.answers) > before)
        return self.answers[-1]

    async def invited(self, mood: Mood) -> None:
        await until(lambda: self.front.mood is mood)

    def hears(self, news: News, **facts: Any) -> None:
        self.adapter.hear({"event": news.value, **facts})

    async def wishes(self, *wished: events.PersonEvent) -> None:
        await until(lambda: self.asked == list(wished))
        self.asked.clear()


async def until(condition: Any) -> None:
    with anyio.fail_after(PATIENCE):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await anyio.sleep(0.005)


@asynccontextmanager
async def seated(**choices: Any) -> AsyncIterator[Table]:
    table = Table(**choices)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(table.adapter.attend, table)
            await table.adapter.open("The rules for programs.")
            yield table
            tasks.cancel_scope.cancel()
    finally:
        await table.adapter.close()
    assert not table.front.open_now


# --- turns -------------------------------------------------------------------------------------------


async def test_what_is_entered_is_the_turn() -> None:
    async with seated(brief="Doubt everything.", keys={"away": "ctrl+g", "newline": "ctrl+j"}) as table:
        answer = await table.during(table.front.enter("I doubt it too.\nReally."))
        assert answer == Answer("I doubt it too.\nReally.")
        read = table.front.written.getvalue()
    assert "Your point of view: Doubt everything." in read
    assert "The rules for programs." not in read
    assert "turn 1 · OPENING · the Arbiter waits 1 min 0 s" in read
    assert "ada_0A1B2C3D\n    I doubt it." in read
    assert "Ctrl+G away" in read
    assert "you\n    I doubt it too.\n    Really." in read
    assert table.front.mood is Mood.WAITING
    assert not table.adapter.memory_lost


@pytest.mark.parametrize("line", ["", "  ", "/skip"])
async def test_an_empty_line_is_a_skip(line: str) -> None:
    async with seated() as table:
        assert await table.during(table.front.enter(line)) == Answer("", skipped=True)


async def test_the_word_by_which_programs_pass_is_text_from_a_person() -> None:
    async with seated() as table:
        assert await table.during(table.front.enter("PASS")) == Answer("PASS")


async def test_a_text_for_a_seat_without_more_is_answered_too() -> None:
    async with seated() as table, anyio.create_task_group() as tasks:

        async def entered() -> None:
            await table.invited(Mood.TURN)
            await table.front.enter("Yes.")

        tasks.start_soon(entered)
        assert await table.adapter.send_turn("What do\x1b[2J you say?") == Answer("Yes.")
        assert "What do you say?" in table.front.written.getvalue()


async def test_what_cannot_be_sent_is_kept() -> None:
    async with seated() as table:
        front = table.front
        for line, words in [
            ("/quot", "there is no command /quot"),
            ("é" * 51, "too long by 2 bytes: nothing was sent"),
        ]:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(table.turn)
                await table.invited(Mood.TURN)
                await front.enter(line)
                await front.shows(words)
                assert front.draft == line
                tasks.cancel_scope.cancel()
        assert table.answers == []


async def test_a_text_of_nothing_but_controls_is_no_skip() -> None:
    async with seated() as table, anyio.create_task_group() as tasks:
        tasks.start_soon(table.turn)
        await table.invited(Mood.TURN)
        await table.front.enter("\u200b\u200b")
        await table.front.shows("there is nothing readable in it")
        assert table.answers == []
        tasks.cancel_scope.cancel()


# --- what is not sent in time ------------------------------------------------------------------------


async def test_what_is_entered_between_turns_is_kept_and_not_sent() -> None:
    async with seated() as table:
        await table.front.enter("Early.")
        await table.front.shows("it is not your turn: nothing was sent")
        assert table.front.draft == "Early."
        await table.front.enter("")
        await table.front.shows("there is nothing to skip")
        table.front.draft = "Early."
        assert await table.during(table.front.enter("Now.")) == Answer("Now.")
        assert "what you had typed is still there" in table.front.written.getvalue()


async def test_a_turn_that_is_taken_back_leaves_what_was_typed() -> None:
    async with seated() as table, anyio.create_task_group() as tasks:
        tasks.start_soon(table.turn)
        await table.invited(Mood.TURN)
        table.front.draft = "Half a th"
        table.hears(News.FAILED, turn_id=1, reason="it was revoked: deadline_exceeded")
        table.scope.cancel()
        read = await table.front.shows("turn 1 is over: it was revoked: deadline_exceeded; your text was")
        await table.invited(Mood.WAITING)
        assert table.front.draft == "Half a th"
        assert "\nyou\n" not in read
        assert table.answers == []


async def test_a_text_that_was_sent_a_moment_too_late_comes_back() -> None:
    async with seated() as table:
        assert await table.during(table.front.enter("Too late."), turn_id=4) == Answer("Too late.")
        table.front.draft = "Next."
        table.hears(News.FAILED, turn_id=3, reason="another turn")
        assert table.front.draft == "Next."
        table.hears(News.FAILED, turn_id=4, reason="it was revoked")
        assert table.front.draft == "Too late.\nNext."
        table.hears(News.FAILED, turn_id=4, reason="once is enough")
        assert table.front.draft == "Too late.\nNext."


async def test_a_text_that_arrives_together_with_the_end_of_the_turn_comes_back() -> None:
    async with seated() as table, anyio.create_task_group() as tasks:
        tasks.start_soon(table.turn)
        await table.invited(Mood.TURN)
        table.adapter._send("Both at once.", "Both at once.")
        table.scope.cancel()
        await table.invited(Mood.WAITING)
        if not table.answers:
            assert table.front.draft == "Both at once."
        else:
            assert table.answers == [Answer("Both at once.")]


async def test_two_texts_in_one_turn_are_one_turn() -> None:
    async with seated() as table:
        await table.during(table.front.enter("One."), table.front.enter("Two."))
        await table.front.shows("it is not your turn")
        assert table.answers == [Answer("One.")]
        assert table.front.draft == "Two."


# --- timeouts ----------------------------------------------------------------------------------------


async def test_without_a_timeout_nothing_is_skipped() -> None:
    async with seated() as table, anyio.create_task_group() as tasks:
        tasks.start_soon(table.turn)
        await table.invited(Mood.TURN)
        await anyio.sleep(0.2)
        assert table.answers == []
        tasks.cancel_scope.cancel()


async def test_an_explicit_timeout_skips_and_keeps_the_text() -> None:
    async with seated(timeout=0.1) as table:
        table.front.draft = "Half"
        assert await table.during() == Answer("", skipped=True)
        await table.front.shows("nothing for 0.1 s: skipped")
        assert table.front.draft == "Half"


async def test_a_key_puts_the_timeout_off() -> None:
    async with seated(timeout=0.3) as table, anyio.create_task_group() as tasks:
        began = anyio.current_time()
        tasks.start_soon(table.turn)
        await table.invited(Mood.TURN)
        for _ in range(4):
            await anyio.sleep(0.1)
            table.front.touched = anyio.current_time()
        await until(lambda: table.answers)
        assert anyio.current_time() - began >= 0.7


async def test_the_timeout_is_changed_by_the_person_alone() -> None:
    async with seated() as table:
        await table.front.bring(Pressed(Command.TIMEOUT))
        await table.front.shows("your timeout is off; enter the seconds")
        assert table.front.begun == "/timeout "
        await table.front.enter("/timeout never")
        await table.front.shows("never is no number of seconds")
        await table.front.enter("/timeout 90")
        await table.front.shows("skipped after 1 min 30 s without a key")
        await table.front.enter("/timeout")
        await table.front.shows("your timeout is 1 min 30 s")
        await table.front.enter("/timeout off")
        await table.front.shows("your turns are never skipped")
        assert table.asked == [], "the Arbiter is told nothing of it"


async def test_a_timeout_that_is_set_in_a_turn_counts_from_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(human, "seconds", lambda _: 0.1)
    async with seated() as table:
        assert await table.during(table.front.enter("/timeout 60")) == Answer("", skipped=True)


async def test_who_lets_a_long_turn_run_out_is_reminded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(human, "REMINDER_SECONDS", 0.2)
    async with seated() as table:
        enter = table.front.shows("the Arbiter waits for another 0.2 s"), table.front.enter("Yes.")
        assert await table.during(*enter, seconds=0.5) == Answer("Yes.")
        assert table.front.written.getvalue().count("waits for another") == 1
        table.front.written.truncate(0)
        assert await table.during(table.front.enter("Yes."), seconds=0.3) == Answer("Yes.")
        assert "waits for another" not in table.front.written.getvalue()


# --- the end of the input ----------------------------------------------------------------------------


@pytest.mark.parametrize("final", [True, False])
async def test_the_end_of_the_input_fails_the_turn_and_is_no_skip(final: bool) -> None:
    async with seated() as table:
        fault = await table.during(table.front.bring(Ended("the person pressed Ctrl+D", final=final)))
        assert isinstance(fault, AdapterFault)
        assert (fault.fault, fault.prompt_sent) == (m.Fault.CLIENT_ERROR, m.PromptSent.YES)
        assert fault.detail == "no more can be entered at this seat: the person pressed Ctrl+D"
        if final:
            await table.turn(2)
            assert isinstance(table.answers[-1], AdapterFault), "and every turn after it"
        else:
            assert await table.during(table.front.enter("Here again."), turn_id=2) == Answer("Here again.")


async def test_the_end_of_the_input_between_turns_fails_the_next() -> None:
    async with seated() as table:
        await table.front.bring(Ended("no more", final=False))
        await table.front.shows("it is not your turn: there is nothing to end")
        await table.front.bring(Ended("the terminal is gone", final=True))
        await until(lambda: table.adapter._gone)
        await table.turn()
        (fault,) = table.answers
        assert isinstance(fault, AdapterFault)


# --- lines that were written beforehand --------------------------------------------------------------


async def test_lines_from_a_pipe_are_taken_one_a_turn() -> None:
    async with seated(waits=True) as table:
        for line in ("One.", "", "/status", "Three."):
            await table.front.enter(line)
        await table.front.bring(Ended("the input has ended", final=True))
        for turn_id in range(1, 5):
            await table.turn(turn_id)
        *answers, fault = table.answers
        assert answers == [Answer("One."), Answer("", skipped=True), Answer("Three.")]
        assert isinstance(fault, AdapterFault)


# --- away and back -----------------------------------------------------------------------------------


async def test_who_is_away_skips_until_they_are_back() -> None:
    async with seated() as table:
        assert await table.during(table.front.bring(Pressed(Command.AWAY))) == Answer("", skipped=True)
        await table.wishes(events.Away())
        assert table.front.mood is Mood.AWAY
        await table.turn(2)
        assert table.answers[-1] == Answer("", skipped=True)
        assert "I doubt it." in table.front.written.getvalue(), "what was said is there to be read"
        await table.front.enter("/back")
        await table.wishes(events.Back(), events.StatusWanted())
        table.adapter.show(status(seat(ME), turn_counter=187))
        assert "where the debate stands" in table.front.written.getvalue()
        assert await table.during(table.front.enter("Hello."), turn_id=3) == Answer("Hello.")


async def test_who_is_away_is_told_that_nothing_is_sent_even_from_a_pipe() -> None:
    async with seated(waits=True) as table:
        await table.front.enter("/away")
        await table.front.enter("Anybody?")
        await table.front.shows("it is not your turn")
        await table.front.enter("/back")
        await table.wishes(events.Away(), events.Back(), events.StatusWanted())


# --- the seat's life ---------------------------------------------------------------------------------


async def test_who_sits_down_learns_who_is_there_and_who_comes() -> None:
    async with seated() as table:
        table.hears(
            News.REGISTERED, participant_id=ME, debate_state="RUNNING", phase="OPENING", topic="Wrap it?"
        )
        table.hears(News.SEATED, participant_id=ME)
        await table.wishes(events.StatusWanted())
        table.adapter.show(status(seat(ME, brand="human"), seat()))
        here = f"At the table: you, {seat().participant_id} (claude, sonnet, sceptic)"
        read = table.front.written.getvalue()
        assert here in read
        assert f"you are seated as {ME}, and wait for your turn" in read
        table.adapter.show(status(seat(ME), seat()))
        assert table.front.written.getvalue().count("At the table") == 1, "nothing has changed"
        await table.during(table.front.enter("Yes."))
        await table.wishes(events.StatusWanted())
        table.adapter.show(status(seat(ME), seat(connected=False)))
        assert "sceptic, not connected)" in table.front.written.getvalue()


async def test_the_whole_status_is_shown_to_who_asks() -> None:
    async with seated() as table:
        await table.front.bring(Pressed(Command.STATUS))
        await table.wishes(events.StatusWanted())
        table.adapter.show(status(seat(), repetition={seat().participant_id: 0.91}))
        assert "repeats itself 0.91" in table.front.written.getvalue()


async def test_who_leaves_with_words_unsent_is_asked_once() -> None:
    async with seated() as table:
        table.front.draft = "But"
        await table.front.bring(Pressed(Command.QUIT))
        await table.front.shows("the same again leaves")
        assert table.asked == []
        await table.front.bring(Pressed(Command.HELP))
        await table.front.bring(Pressed(Command.QUIT))
        await table.front.bring(Pressed(Command.QUIT))
        await table.wishes(events.Leave("user_quit"))
    async with seated() as table:
        await table.front.enter("/quit")
        await table.wishes(events.Leave("user_quit"))


async def test_a_cold_start_is_told_and_nothing_is_lost_by_it() -> None:
    async with seated() as table:
        await table.adapter.restart("Rules.")
        assert "begin anew" in table.front.written.getvalue()
        assert table.adapter.screen is table.front.screen
        assert table.adapter.owns_stdout
        assert table.adapter.person is table.adapter
