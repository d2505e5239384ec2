"""The conversation with a client through its terminal (§6.5). Blocking, for the thread that started it.

1. What the client asks of its terminal is answered whenever it is read; nothing else is written but keys that
   the preset names and one paste a turn (`wrapper.terminal.keys`).
2. A dialog is answered only while the client does not take a prompt, and a question only while it does not
   work either: what somebody wrote can imitate their words, but cannot take the prompt away.
3. An answer counts when the client is ready again, and the screen has stood still. No text is given out
   without the token behind it (§12).
4. After a fault, and when somebody wants it to stop, the client is in a state that nobody knows, and has to
   be ended; unless it told the fault itself and takes the next prompt (`at_rest`).
"""

from __future__ import annotations

import os
import re
import select
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pexpect
from pexpect.fdpexpect import fdspawn

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.adapters.faults import meaning
from wrapper.clean import clean_line
from wrapper.prompts import END_TOKEN
from wrapper.terminal.emulator import Emulator
from wrapper.terminal.keys import KEYS, pasted
from wrapper.terminal.reading import Shown, foot, is_ready, look

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wrapper.adapters.parts import ProfileName
    from wrapper.adapters.presets import Preset
    from wrapper.adapters.screens import Dialog, Terminal
    from wrapper.sandbox import Bounds, InTerminal
    from wrapper.terminal.keys import Key

START_SECONDS = 60.0
"""From the client's start to its prompt."""

QUIET_SECONDS = 0.5
"""How long a screen stands still before what it shows is acted upon: clients draw in many small pieces."""

UNSURE_SECONDS = 5.0
"""The same where the client does not say that it is done, or says nothing that is understood."""

PASTE_SECONDS, LEAVE_SECONDS = 20.0, 3.0

WRITE_SECONDS = 120.0
"""How long a client may take to read what is typed, however steadily it does."""

LOOK_SECONDS = 0.1

MAX_KEYS = 20
"""How many dialogs are answered before the client is given up."""

SHOWN_CHARS, REFUSED_LINES = 600, 8

_FRAME = re.compile("[\u2500-\u257f]{2,}")
"""Lines and corners that are drawn around something."""

_CHUNK = 64 * 1024

_HEARD_AT_ONCE = 4096
"""Bytes of the client's that are shown between two looks at the clock: a few can move whole screens."""

_MAX_REPLIES = 64 * 1024
"""Bytes that wait to be written, beyond which the client's questions are not answered: it does not read."""


class Withdrawn(Exception):  # noqa: N818 - a wish, and no error
    """Raised when whoever asked does not want the answer any more."""


@dataclass(frozen=True, slots=True)
class Told:
    """An answer: the text before the token, how long it took to begin, and what was refused meanwhile."""

    text: str
    first_byte: float | None
    refused: tuple[str, ...]


_NOTHING = Shown(asked=False, working=False, done=False, blocks=(), notes=(), answer=None)


@dataclass(slots=True)
class _Turn:
    """What is known of the turn that runs; times are of the monotonic clock."""

    began: float
    changed: float
    first_byte: float | None = None
    shown: Shown = _NOTHING
    submitted: int = 1
    refused: list[str] = field(default_factory=list)


class Console:
    """One client at its terminal. Every method but the first is for the thread that made it."""

    def __init__(self, running: InTerminal, preset: Preset, terminal: Terminal, profile: ProfileName) -> None:
        self._running = running
        self._preset = preset
        self._terminal = terminal
        self._profile = profile
        self._signs = terminal.signs()
        self._emulator = Emulator()
        self._line = fdspawn(running.screen, use_poll=True)
        self._pid = os.pidfd_open(running.process.pid)
        self._to_write = bytearray()
        self._written = 0
        self._read = 0
        self._heard = time.monotonic()
        self._news = True
        self._gone = False
        self._submitted = False
        """Whether the prompt of the turn that runs may have gone to the model."""
        self.at_rest = True
        """Whether the client waits for a prompt, as far as anybody can tell."""

    def get_ready(self, alarm: int) -> None:
        """Return when the client takes a prompt. Raises `AdapterFault` (START_FAILED), or `Withdrawn`."""
        until = time.monotonic() + START_SECONDS
        pressed = 0
        while not self._gone:
            self._step(LOOK_SECONDS, alarm)
            if time.monotonic() - self._heard < QUIET_SECONDS and time.monotonic() < until:
                continue
            lines = self._emulator.lines()
            if is_ready(lines, self._signs):
                if self._emulator.takes_paste:
                    return
                raise self._not_ready("does not take a marked paste (bracketed paste mode)")
            dialog = self._dialog(self._terminal.dialogs, lines)
            if dialog is not None and pressed < MAX_KEYS:
                pressed += 1
                self._press(dialog.keys, alarm)
            elif time.monotonic() >= until:
                raise self._not_ready(f"did not ask for a prompt within {START_SECONDS:g} s")
        raise self._not_ready("ended before it asked for a prompt")

    def ask(self, text: str, mark: str, bounds: Bounds, alarm: int) -> Told:
        """The answer to ``text``, in whose first line is ``mark``. Raises `AdapterFault`, or `Withdrawn`.

        Before that the client has to be ready. After anything that is raised it has to be ended.
        """
        self.at_rest = False
        self._submitted = False
        self._emulator.forget()
        self._read = 0
        self.get_ready(alarm)
        self._write(pasted(text), alarm)
        self._wait_until_quiet(PASTE_SECONDS, alarm)
        self._submitted = True
        self._press(self._terminal.submit, alarm)
        now = time.monotonic()
        turn = _Turn(began=now, changed=now)
        while not self._gone:
            self._step(LOOK_SECONDS, alarm)
            now = time.monotonic()
            if self._news:
                self._notice(turn, mark, now)
            if now - turn.changed >= QUIET_SECONDS and self._is_over(turn, now, alarm):
                assert turn.shown.answer is not None
                self.at_rest = True
                return Told(turn.shown.answer, turn.first_byte, tuple(turn.refused))
            self._check_bounds(turn, bounds, now)
        raise self._fault(turn, Fault.CLIENT_ERROR, "ended in the middle of the turn")

    def leave(self) -> None:
        """Ask the client to end, and give it a moment for that."""
        until = time.monotonic() + LEAVE_SECONDS
        try:
            self._press(self._terminal.leave, None)
            while not self._gone and time.monotonic() < until:
                self._step(LOOK_SECONDS, None)
        except (AdapterFault, OSError):
            return

    def end(self) -> tuple[int, ...]:
        """End the client, and all that it started; return the processes that would not."""
        os.close(self._pid)
        return self._running.end()

    # --- a turn --------------------------------------------------------------------------------------

    def _notice(self, turn: _Turn, mark: str, now: float) -> None:
        """Look at the screen."""
        self._news = False
        shown = look(self._emulator.lines(), self._signs, mark, self._emulator.columns)
        if shown != turn.shown:
            turn.shown, turn.changed = shown, now
        if shown.blocks and turn.first_byte is None:
            turn.first_byte = now - turn.began

    def _is_over(self, turn: _Turn, now: float, alarm: int) -> bool:
        """Whether the answer is whole; where the client waits for somebody, do what it waits for."""
        shown, still = turn.shown, now - turn.changed
        if shown.working:
            return False
        lines = self._emulator.lines()
        if not is_ready(lines, self._signs):
            self._refuse(turn, lines, alarm)
            return False
        if shown.answer is not None:
            return shown.done or still >= UNSURE_SECONDS
        if not shown.asked and still >= UNSURE_SECONDS and turn.submitted < 2:
            # A client that was busy with something else has swallowed the key. A second one cannot send
            # twice: what was sent has left the prompt.
            turn.submitted += 1
            self._press(self._terminal.submit, alarm)
        if shown.asked and still >= UNSURE_SECONDS:
            self._check_words(turn)
        return False

    def _refuse(self, turn: _Turn, lines: Sequence[str], alarm: int) -> None:
        dialog = self._dialog(self._terminal.questions, lines)
        if dialog is None or len(turn.refused) >= MAX_KEYS:
            return
        turn.refused.append(_told(foot(lines)[-REFUSED_LINES:]))
        self._press(dialog.keys, alarm)
        turn.changed = time.monotonic()

    def _check_words(self, turn: _Turn) -> None:
        """Raise what the client is known to mean by what it said in place of an answer."""
        meant = meaning(self._preset, self._words(turn))
        if meant is not None:
            self.at_rest = True
            known, resets_at = meant
            fault = self._fault(turn, known.fault, "did not answer", known.prompt_sent)
            fault.resets_at = resets_at
            raise fault

    def _check_bounds(self, turn: _Turn, bounds: Bounds, now: float) -> None:
        if self._read > bounds.output_bytes:
            what = f"wrote more than {bounds.output_bytes} bytes to its terminal"
            raise self._fault(turn, Fault.ANSWER_TOO_LARGE, what, PromptSent.YES)
        if now - turn.began >= bounds.overall:
            missing = "" if turn.shown.answer is None else ", though the token was there"
            raise self._fault(turn, Fault.DEADLINE, f"was not done after {bounds.overall:g} s{missing}")
        if bounds.first_byte is not None and turn.first_byte is None:
            if now - turn.began >= bounds.first_byte:
                what = f"showed no answer for {bounds.first_byte:g} s"
                raise self._fault(turn, Fault.FIRST_BYTE_TIMEOUT, what)
        elif bounds.stall is not None and now - turn.changed >= bounds.stall:
            what = f"began to answer and stood still for {bounds.stall:g} s, without {END_TOKEN}"
            raise self._fault(turn, Fault.STALLED, what)

    # --- the terminal --------------------------------------------------------------------------------

    def _step(self, seconds: float, alarm: int | None) -> None:
        """Wait for the next thing to happen, at most ``seconds``, and see to it."""
        poll = select.poll()
        poll.register(self._running.screen, select.POLLIN | (select.POLLOUT if self._to_write else 0))
        poll.register(self._pid, select.POLLIN)
        if alarm is not None:
            poll.register(alarm, select.POLLIN)
        happened = dict(poll.poll(seconds * 1000))
        if alarm in happened:
            raise Withdrawn
        if happened.get(self._running.screen, 0) & select.POLLOUT:
            self._write_some()
        heard = self._hear() if self._running.screen in happened else False
        if self._pid in happened and not heard:
            self._gone = True

    def _hear(self) -> bool:
        """Read what there is; whether there was something."""
        try:
            data = self._line.read_nonblocking(_HEARD_AT_ONCE, timeout=0)
        except pexpect.TIMEOUT:
            return False
        except pexpect.EOF:  # nobody has the other end any more
            self._gone = True
            return False
        replies = self._emulator.feed(data)
        if len(self._to_write) < _MAX_REPLIES:
            self._to_write += replies
        self._read += len(data)
        self._heard = time.monotonic()
        self._news = True
        return True

    def _write_some(self) -> None:
        try:
            written = self._line.send(bytes(self._to_write[:_CHUNK]))
        except BlockingIOError:
            return
        except OSError:
            self._gone = True
            return
        del self._to_write[:written]
        self._written += written

    def _write(self, data: bytes, alarm: int | None) -> None:
        """Write ``data`` whole, reading meanwhile: a client that is not read does not read."""
        self._to_write += data
        # Not until nothing is left to write: who asks without end gets answers without end.
        wanted = self._written + len(self._to_write)
        written, began = self._written, time.monotonic()
        since = began
        while self._written < wanted and not self._gone:
            self._step(LOOK_SECONDS, alarm)
            now = time.monotonic()
            if self._written != written:
                written, since = self._written, now
            if now - since >= PASTE_SECONDS:
                raise self._not_ready(f"took nothing of what was typed for {PASTE_SECONDS:g} s")
            if now - began >= WRITE_SECONDS:
                raise self._not_ready(f"did not take what was typed within {WRITE_SECONDS:g} s")

    def _press(self, keys: Iterable[Key], alarm: int | None) -> None:
        """Press ``keys`` one after the other, as a person would: each once the one before is shown."""
        for key in keys:
            self._write(KEYS[key], alarm)
            self._wait_until_quiet(2 * QUIET_SECONDS, alarm, least=QUIET_SECONDS / 2)

    def _wait_until_quiet(self, most: float, alarm: int | None, *, least: float = QUIET_SECONDS) -> None:
        """Return when nothing was heard for ``least`` seconds, or after ``most``."""
        began = self._heard = time.monotonic()
        while not self._gone and time.monotonic() - began < most:
            if time.monotonic() - self._heard >= least:
                return
            self._step(LOOK_SECONDS, alarm)

    def _dialog(self, dialogs: Iterable[Dialog], lines: Sequence[str]) -> Dialog | None:
        shown = "\n".join(foot(lines))
        for dialog in dialogs:
            if self._profile in dialog.profiles and re.search(dialog.pattern, shown, re.MULTILINE):
                return dialog
        return None

    # --- what went wrong -----------------------------------------------------------------------------

    def _words(self, turn: _Turn) -> str:
        """What the client said in this turn, or else what it shows."""
        said = (*turn.shown.blocks, *turn.shown.notes)
        return "\n".join(said or foot(self._emulator.lines())[-REFUSED_LINES:])

    def _fault(
        self, turn: _Turn, fault: Fault, what: str, sent: PromptSent = PromptSent.MAYBE
    ) -> AdapterFault:
        said = _told([self._words(turn)])
        seen = sum(len(block.encode()) for block in turn.shown.blocks)
        detail = f"{self._preset.executable} {what}: {said or 'it shows nothing'}"
        return AdapterFault(fault, sent, detail, partial_bytes=seen, refused=tuple(turn.refused))

    def _not_ready(self, what: str) -> AdapterFault:
        shown = _told(foot(self._emulator.lines())[-12:])
        detail = f"{self._preset.executable} {what}; its screen shows: {shown or 'nothing'}"
        if self._submitted:
            return AdapterFault(Fault.CLIENT_ERROR, PromptSent.MAYBE, detail)
        return AdapterFault(Fault.START_FAILED, PromptSent.NO, detail)


def _told(lines: Sequence[str]) -> str:
    """The end of ``lines`` in one, without the frames around it."""
    words = clean_line(_FRAME.sub(" ", " ".join(lines)), _CHUNK)
    return words if len(words) <= SHOWN_CHARS else f"…{words[-SHOWN_CHARS:]}"
