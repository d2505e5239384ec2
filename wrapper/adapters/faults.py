"""What went wrong with a client, in words, and whether its prompt may have reached it (§6.5, §6.6). Pure."""

from __future__ import annotations

import re
import signal
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.adapters.reading import Complaint, read_complaint
from wrapper.clean import clean_line, clean_text, decode_output

if TYPE_CHECKING:
    from wrapper.adapters.parts import KnownFault
    from wrapper.adapters.presets import Preset
    from wrapper.sandbox import Bounds, Completed

WORDS_CHARS = 600
"""What is kept of a client's own words: the end, where the reason stands."""

SEARCHED_CHARS = 4096
"""What of them is searched for what they mean, at either end: a pattern may take time that grows with the
square of it, or worse."""

_EDGE = SEARCHED_CHARS // 2

RESET_CHARS = 80

_DURATION = re.compile(r"(\d+h)?(\d+m)?(\d+(\.\d+)?s)?", re.ASCII)

_SECONDS_DIGITS = 12
"""A UNIX time with more digits than this counts milliseconds."""


def fault_of(done: Completed, preset: Preset, bounds: Bounds) -> AdapterFault | None:
    """Why this run of ``preset`` is not an answer; None if it may be one."""
    # What has no end is not read: its beginning says nothing of a failure, and takes twenty times its size.
    unread = done.stopped is Fault.ANSWER_TOO_LARGE
    complaint = Complaint(failed=False, words="") if unread else read_complaint(done.stdout, preset.answer)
    fault = _judged(done, preset, bounds, complaint)
    if fault is not None:
        fault.refused = complaint.refused
    return fault


def _judged(done: Completed, preset: Preset, bounds: Bounds, complaint: Complaint) -> AdapterFault | None:
    words = complaint.words or _words(done, preset)
    if done.stopped is not None:
        # Started and stopped: the client had the prompt on its input, and nobody knows what it made of it.
        sent = PromptSent.YES if done.stopped is Fault.ANSWER_TOO_LARGE else PromptSent.MAYBE
        return _fault(done, done.stopped, sent, f"{preset.executable} {_broken(done.stopped, bounds)}", words)
    if done.left_behind:
        left = ", ".join(str(process) for process in done.left_behind)
        what = f"{preset.executable} left processes that cannot be ended ({left})"
        return _fault(done, Fault.INTERNAL, PromptSent.MAYBE, what, words)
    if done.returncode == 0 and not complaint.failed:
        return None
    return told(done, preset, f"{preset.executable} {_ended(done.returncode)}", words)


def told(
    done: Completed, preset: Preset, what: str, words: str, sent: PromptSent = PromptSent.MAYBE
) -> AdapterFault:
    """A failure that the client told in ``words``: what they are known to mean, or else ``sent``."""
    if meant := meaning(preset, words):
        known, resets_at = meant
        fault = _fault(done, known.fault, known.prompt_sent, what, words)
        fault.resets_at = resets_at
        return fault
    return _fault(done, Fault.CLIENT_ERROR, sent, what, words)


def meaning(preset: Preset, words: str) -> tuple[KnownFault, str | None] | None:
    """The fault that the client is known to mean by ``words``, and when its quota comes back, if it says."""
    edges = words if len(words) <= SEARCHED_CHARS else f"{words[:_EDGE]}\n{words[-_EDGE:]}"
    for known in preset.faults:
        if found := re.search(known.pattern, edges):
            return known, _moment(found.groupdict().get("reset"))
    return None


def _fault(done: Completed, fault: Fault, sent: PromptSent, what: str, words: str) -> AdapterFault:
    said = clean_line(words[-WORDS_CHARS:], WORDS_CHARS)
    detail = f"{what}: {said}" if said else f"{what}, and gave no reason"
    return AdapterFault(fault, sent, detail, partial_bytes=len(done.stdout))


def _words(done: Completed, preset: Preset) -> str:
    """What the client said about it: its errors, or else its output, unless that is lines for programs."""
    output = done.stdout[-4096:] if preset.answer.format == "json" else b""
    return clean_text(decode_output(done.stderr)) or clean_text(decode_output(output))


def _moment(said: str | None) -> str | None:
    """When a quota is full again, if the client told: RFC 3339 in UTC, or its words if they name no moment.

    ``3pm (Europe/Rome)`` names none: which day is meant, only the client knows. Nor does ``34.07s``, which
    counts from when it was said.
    """
    if not said:
        return None
    try:
        if said.isascii() and said.isdecimal():
            seconds = int(said) // 1000 if len(said) > _SECONDS_DIGITS else int(said)
            moment = datetime.fromtimestamp(seconds, UTC)
        else:
            moment = datetime.fromisoformat(said)
        if moment.tzinfo is not None:
            return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        pass
    return clean_line(f"in {said}" if _DURATION.fullmatch(said) else said, RESET_CHARS) or None


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
