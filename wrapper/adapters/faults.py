"""What went wrong with a client, in words, and whether its prompt may have reached it (§6.5, §6.6). Pure."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.clean import clean_line, clean_text, decode_output

if TYPE_CHECKING:
    from wrapper.adapters.presets import Preset
    from wrapper.sandbox import Bounds, Completed

WORDS_CHARS = 600
"""What is kept of a client's own words: the end, where the reason stands."""


def fault_of(done: Completed, preset: Preset, bounds: Bounds) -> AdapterFault | None:
    """Why this run of ``preset`` is not an answer; None if it may be one."""
    words = _words(done)
    if done.stopped is not None:
        # Started and stopped: the client had the prompt on its input, and nobody knows what it made of it.
        sent = PromptSent.YES if done.stopped is Fault.ANSWER_TOO_LARGE else PromptSent.MAYBE
        return _fault(done, done.stopped, sent, f"{preset.executable} {_broken(done.stopped, bounds)}", words)
    if done.left_behind:
        left = ", ".join(str(process) for process in done.left_behind)
        what = f"{preset.executable} left processes that cannot be ended ({left})"
        return _fault(done, Fault.INTERNAL, PromptSent.MAYBE, what, words)
    if done.returncode == 0:
        return None
    what = f"{preset.executable} {_ended(done.returncode)}"
    for known in preset.faults:
        if re.search(known.pattern, words):
            return _fault(done, known.fault, known.prompt_sent, what, words)
    return _fault(done, Fault.CLIENT_ERROR, PromptSent.MAYBE, what, words)


def _fault(done: Completed, fault: Fault, sent: PromptSent, what: str, words: str) -> AdapterFault:
    said = clean_line(words[-WORDS_CHARS:], WORDS_CHARS)
    detail = f"{what}: {said}" if said else f"{what}, and gave no reason"
    return AdapterFault(fault, sent, detail, partial_bytes=len(done.stdout))


def _words(done: Completed) -> str:
    """What the client said about it: its errors, or else its output."""
    return clean_text(decode_output(done.stderr)) or clean_text(decode_output(done.stdout[-4096:]))


def _broken(bound: Fault, bounds: Bounds) -> str:
    match bound:
        case Fault.FIRST_BYTE_TIMEOUT:
            return f"said nothing for {bounds.first_byte:g} s"
        case Fault.STALLED:
            return f"began to answer and then said nothing for {bounds.stall:g} s"
        case Fault.ANSWER_TOO_LARGE:
            return f"said more than {bounds.output_bytes} bytes"
        case _:
            return f"was not done after {bounds.overall:g} s"


def _ended(returncode: int | None) -> str:
    if returncode is not None and returncode < 0:
        return f"was ended by signal {-returncode} ({signal.strsignal(-returncode)})"
    return f"ended with exit code {returncode}"
