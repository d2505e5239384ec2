"""HumanAdapter (§3.3.B, §9, §10, §11): a person's turns, skips, absences and timeouts, whatever they sit at.

1. Nothing is sent but what the person sends while it is their turn. What was not sent is given back to them:
   half typed, sent a moment too late, or refused.
2. A skip is somebody's choice: an empty line, /skip, being away, a timeout that was asked for. That no more
   can be entered is none, and fails the turn.
3. Commands go to the seat's inbox and never into a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio

from consilium.console import Style, duration
from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper import events
from wrapper.adapters.base import Answer, ParticipantAdapter
from wrapper.clean import clean_text
from wrapper.human import pages
from wrapper.human.commands import Command, Misspelt, Order, Say, meaning, seconds
from wrapper.human.front import Ended, Entered, Mood, Pressed
from wrapper.telling import Teller

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TextIO

    from consilium.console import Console
    from consilium.messages import Status
    from wrapper.adapters.base import Requests, Turn
    from wrapper.human.front import Front, Input

REMINDER_SECONDS = 60.0
"""How long before the Arbiter takes a turn back its person is reminded."""

USER_QUIT = "user_quit"


@dataclass(slots=True)
class _Asked:
    """A turn that a person has, and what they made of it. ``deadline`` is None where nobody takes it back."""

    turn_id: int
    deadline: float | None
    speech_bytes: int
    since: float
    reminded: bool = False
    answer: Answer | None = None
    failure: str = ""
    moved: anyio.Event = field(default_factory=anyio.Event)

    def stir(self) -> None:
        """Have the turn looked at again."""
        self.moved.set()
        self.moved = anyio.Event()


class HumanAdapter(ParticipantAdapter):
    """A seat whose participant is a person at ``front``."""

    def __init__(
        self,
        front: Front,
        *,
        timeout: float | None = None,
        brief: str | None = None,
        keys: Mapping[str, str] | None = None,
    ) -> None:
        """``timeout`` skips a turn after so many seconds without a key; None never does (§11).

        ``brief`` is the point of view that the person was asked to take; ``keys`` are those of the front.
        """
        self._front = front
        self._timeout = timeout
        self._brief = brief
        self._keys = keys or {}
        self._teller = Teller(own=True)
        self._own = ""
        self._opened = anyio.Event()
        self._away = False
        self._asked: _Asked | None = None
        self._a_turn_is_open = anyio.Event()
        self._gone = ""
        self._given: tuple[int, str] | None = None
        self._table: tuple[str, ...] = ()
        self._whole_status = self._may_ask = False
        self._warned_of_quitting = False
        self._wishes: list[events.PersonEvent] = []
        self._wish = anyio.Event()

    # --- the contract ----------------------------------------------------------------------------------

    async def open(self, system_prompt: str) -> None:  # noqa: ARG002 - the rules that programs need
        """Sit down at the front. Raises `AdapterFault` where nobody can type anything."""
        self._front.open()
        if self._brief is not None:
            brief = self._brief
            self._front.show(lambda console: console.text(f"Your point of view: {brief}"))
        self._front.show(lambda console: pages.commands(console, self._keys))
        self._front.invite(Mood.WAITING)
        self._opened.set()

    async def take_turn(self, turn: Turn) -> Answer:
        """Show the turn, and wait for the person. Raises `AdapterFault` if nothing more can be entered."""
        now = anyio.current_time()
        asked = _Asked(turn.context.turn_id, turn.deadline, turn.speech_bytes, now)
        left = max(0.0, turn.deadline - now)
        return await self._ask(asked, lambda console: pages.turn(console, turn, left))

    async def send_turn(self, text: str) -> Answer:
        """The same for a text without more: shown as it is, and never taken back by a deadline."""
        asked = _Asked(0, None, 2**31, anyio.current_time())
        return await self._ask(asked, lambda console: console.text(clean_text(text)))

    async def restart(self, system_prompt: str) -> None:  # noqa: ARG002 - as in `open`
        """A person has no chat to lose: they are told, and go on."""
        self._say("the operator asks you to begin anew")

    async def close(self) -> None:
        """Leave the terminal as it was."""
        self._front.close()

    @property
    def memory_lost(self) -> bool:
        """Never: what a person remembers is no chat."""
        return False

    @property
    def person(self) -> HumanAdapter:
        """Who sits here."""
        return self

    # --- beside the turns --------------------------------------------------------------------------------

    @property
    def screen(self) -> TextIO:
        """Where others may write lines for the person."""
        return self._front.screen

    @property
    def owns_stdout(self) -> bool:
        """Whether the person reads from standard output."""
        return self._front.owns_stdout

    async def attend(self, seat: Requests) -> None:
        """Take what the person enters, as long as the seat lives."""
        await self._opened.wait()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._forward, seat)
            await self._front.serve(self._take)

    def hear(self, event: Mapping[str, Any]) -> None:
        """Tell the person of the seat's life."""
        for line in self._teller.told(event):
            self._say(line)
        match event.get("event"):
            case events.News.REGISTERED:
                self._own = str(event["participant_id"])
            case events.News.SEATED:
                self._post(events.StatusWanted())
            case events.News.FAILED:
                self._taken_back(int(event["turn_id"]), str(event["reason"]))
            case _:
                pass

    def show(self, status: Status) -> None:
        """Where the debate stands: all of it if that was asked for, else who has come and gone."""
        self._may_ask = True
        seats = tuple(f"{seat.participant_id} {seat.connected}" for seat in status.seats)
        if self._whole_status:
            self._whole_status = False
            self._front.show(lambda console: pages.status(console, status, self._own))
        elif seats != self._table:
            self._front.show(lambda console: pages.table(console, status, self._own))
        self._table = seats

    def _taken_back(self, turn_id: int, reason: str) -> None:
        """A turn came to nothing; what the person had sent for it is theirs again."""
        if self._given is not None and self._given[0] == turn_id:
            self._front.give_back(self._given[1])
            self._given = None
        kept = "; your text was not sent, and is kept" if self._front.draft else ""
        self._say(f"turn {turn_id} is over: {reason}{kept}", Style.RED)

    async def _forward(self, seat: Requests) -> None:
        while True:
            await self._wish.wait()
            self._wish = anyio.Event()
            while self._wishes:
                await seat.send(self._wishes.pop(0))

    def _post(self, wish: events.PersonEvent) -> None:
        """Bring ``wish`` to the seat. A question that is on its way is not asked twice."""
        if wish != events.StatusWanted() or wish not in self._wishes:
            self._wishes.append(wish)
            self._wish.set()

    # --- a turn ------------------------------------------------------------------------------------------

    async def _ask(self, asked: _Asked, page: Callable[[Console], None]) -> Answer:
        self._front.show(page)
        if self._away:
            self._say("you are away: skipped")
            return Answer("", skipped=True)
        self._given = None
        if self._may_ask:
            self._post(events.StatusWanted())
        self._asked = asked
        self._a_turn_is_open.set()
        self._front.invite(Mood.TURN)
        self._say(pages.hint(self._keys))
        if self._front.draft:
            self._say("what you had typed is still there: Enter sends it")
        try:
            answer = await self._outcome(asked)
        except anyio.get_cancelled_exc_class():
            if asked.answer is not None and asked.answer.text:
                self._front.give_back(asked.answer.text)
            raise
        finally:
            self._asked = None
            self._no_turn_is_open()
            self._front.invite(self._mood)
        if answer.text:
            self._given = asked.turn_id, answer.text
        return answer

    async def _outcome(self, asked: _Asked) -> Answer:
        """Wait until the turn is answered, or the person's own timeout is over (§11)."""
        while True:
            if asked.answer is not None:
                return asked.answer
            if self._gone or asked.failure:
                detail = f"no more can be entered at this seat: {self._gone or asked.failure}"
                raise AdapterFault(Fault.CLIENT_ERROR, PromptSent.YES, detail)
            now = anyio.current_time()
            skip_at = self._skip_at(asked)
            if skip_at is not None and now >= skip_at:
                self._say(f"nothing for {duration(self._timeout or 0)}: skipped")
                return Answer("", skipped=True)
            remind_at = self._remind_at(asked)
            if remind_at is not None and now >= remind_at:
                asked.reminded = True
                self._say(f"the Arbiter waits for another {duration(REMINDER_SECONDS)}", Style.YELLOW)
                continue
            moved = asked.moved
            with anyio.move_on_after(
                min(at - now for at in (skip_at, remind_at, now + 3600) if at is not None)
            ):
                await moved.wait()

    def _skip_at(self, asked: _Asked) -> float | None:
        if self._timeout is None:
            return None
        return max(asked.since, self._front.touched) + self._timeout

    def _remind_at(self, asked: _Asked) -> float | None:
        """Once, and only where the turn is long enough for it to be news."""
        if asked.reminded or asked.deadline is None or asked.deadline - asked.since < 2 * REMINDER_SECONDS:
            return None
        return asked.deadline - REMINDER_SECONDS

    # --- what is entered ---------------------------------------------------------------------------------

    async def _take(self, entered: Input) -> None:
        match entered:
            case Entered(text):
                await self._entered(text)
            case Pressed(command):
                self._obey(command, "")
            case Ended(reason, final):
                self._ended(reason, final=final)

    async def _entered(self, text: str) -> None:
        meant = meaning(text)
        match meant:
            case Order(Command.SKIP):
                await self._until_it_is_our_turn()
                self._skip()
            case Order(command, argument):
                self._obey(command, argument)
            case Misspelt(word):
                self._front.give_back(text)
                self._say(f"there is no command {word}; /help lists them, and // begins a text with /")
            case Say(said):
                await self._until_it_is_our_turn()
                self._send(said, text)

    async def _until_it_is_our_turn(self) -> None:
        """Lines that were written beforehand are taken one a turn; who sits at a terminal is told instead."""
        while (
            self._front.waits and not self._away and (self._asked is None or self._asked.answer is not None)
        ):
            await self._a_turn_is_open.wait()

    def _settle(self, asked: _Asked, answer: Answer) -> None:
        asked.answer = answer
        asked.stir()
        self._no_turn_is_open()

    def _no_turn_is_open(self) -> None:
        """From here on there is something to wait for; who waits already waits for the same."""
        if self._a_turn_is_open.is_set():
            self._a_turn_is_open = anyio.Event()

    def _skip(self) -> None:
        if self._asked is None or self._asked.answer is not None:
            self._say("it is not your turn: there is nothing to skip")
        else:
            self._settle(self._asked, Answer("", skipped=True))

    def _send(self, said: str, typed: str) -> None:
        text = clean_text(said)
        asked = self._asked
        if asked is None or asked.answer is not None:
            self._front.give_back(typed)
            self._say("it is not your turn: nothing was sent, and your text is kept for it")
        elif not text.strip():
            self._say("there is nothing readable in it: nothing was sent")
        elif (over := len(text.encode("utf-8", "replace")) - asked.speech_bytes) > 0:
            self._front.give_back(typed)
            self._say(f"too long by {over:,} bytes: nothing was sent; shorten it", Style.RED)
        else:
            self._front.show(lambda console: pages.own(console, text))
            self._settle(asked, Answer(text))

    def _ended(self, reason: str, *, final: bool) -> None:
        if final:
            self._gone = reason
        elif self._asked is None:
            self._say("it is not your turn: there is nothing to end; /quit leaves the debate")
            return
        if self._asked is not None:
            self._asked.failure = reason
            self._asked.stir()

    # --- commands ----------------------------------------------------------------------------------------

    def _obey(self, command: Command, argument: str) -> None:
        warned, self._warned_of_quitting = self._warned_of_quitting, False
        match command:
            case Command.AWAY:
                self._leave_table()
            case Command.BACK:
                self._come_back()
            case Command.STATUS:
                self._whole_status = True
                self._post(events.StatusWanted())
            case Command.TIMEOUT:
                self._set_timeout(argument)
            case Command.HELP:
                self._front.show(lambda console: pages.commands(console, self._keys))
            case Command.SKIP:
                self._skip()
            case Command.QUIT if self._front.draft and not warned:
                self._warned_of_quitting = True
                self._say("what you have typed is not sent; the same again leaves the debate")
            case Command.QUIT:
                self._post(events.Leave(USER_QUIT))

    @property
    def _mood(self) -> Mood:
        if self._away:
            return Mood.AWAY
        return Mood.WAITING if self._asked is None else Mood.TURN

    def _leave_table(self) -> None:
        """§9.3: later turns are skipped, and so is this one, which nobody would answer."""
        self._away = True
        self._post(events.Away())
        self._say("you are away: your turns are skipped until you come back (/back)")
        if self._asked is not None:
            self._skip()
        self._front.invite(self._mood)

    def _come_back(self) -> None:
        """§9.4."""
        self._away = False
        self._post(events.Back())
        self._whole_status = True
        self._post(events.StatusWanted())
        self._say("you are back at the table")
        self._front.invite(self._mood)

    def _set_timeout(self, argument: str) -> None:
        if not argument:
            now = "off" if self._timeout is None else duration(self._timeout)
            self._say(f"your timeout is {now}; enter the seconds without a key, or off")
            self._front.begin("/timeout ")
            return
        try:
            self._timeout = seconds(argument)
        except ValueError:
            self._say(f"{argument} is no number of seconds, nor off")
            return
        if self._timeout is None:
            self._say("your turns are never skipped for you")
        else:
            self._say(f"a turn of yours is skipped after {duration(self._timeout)} without a key")
        if self._asked is not None:
            self._asked.since = anyio.current_time()
            self._asked.stir()

    def _say(self, line: str, style: Style = Style.DIM) -> None:
        self._front.show(lambda console: console.text(line, style=style))
