"""What is told of a seat's life while it lasts, in lines that a person understands. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from consilium.pausing import moment
from wrapper.events import News

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINES: Mapping[str, tuple[str, ...]] = {
    News.REGISTERED: ("registered as {participant_id}; the debate is {debate_state}", "topic: {topic}"),
    News.SEATED: ("seated, and waiting for {waits_for}",),
    News.SPEAKING: ("turn {turn_id} ({phase}): speaking",),
    News.SPOKE: ("turn {turn_id}: spoke {words:,} words",),
    News.PASSED: ("turn {turn_id}: passed",),
    News.PAUSED: ("paused: {reason}{absent}{back}",),
    News.RESUMED: ("the debate goes on",),
    News.RECOVERED: ("the operator has it {chat}",),
}
"""The lines of each event. One that is not here is told by a warning of the log, or at the end."""

_OWN: Mapping[str, tuple[str, ...]] = {
    **_LINES,
    News.SEATED: ("you are seated as {participant_id}, and wait for {waits_for}",),
    News.SPEAKING: (),  # the turn's page says so
    News.SPOKE: ("turn {turn_id}: your {words:,} words are sent",),
    News.PASSED: ("turn {turn_id}: skipped",),
    News.RECOVERED: ("the operator has you at the table again",),
    News.STANDING: ("the Arbiter has you down as {need}; if you leave, {place}{less}",),
}
"""The same for who sits there in person."""

_WAITS_FOR = {"PAUSED": "the operator to resume the debate", "WAITING_QUORUM": "the others"}
_CHATS = {"keep": "go on with its chat", "cold": "begin a new chat"}


class Teller:
    """Makes lines of events. It remembers how the debate stood, for what the seat waits for."""

    def __init__(self, *, own: bool = False) -> None:
        """``own``: the reader is the one who sits there."""
        self._lines = _OWN if own else _LINES
        self._debate = ""

    def told(self, event: Mapping[str, Any]) -> list[str]:
        """The lines for ``event``: none, if a person need not know."""
        self._debate = event.get("debate_state", self._debate)
        missing, resets_at = ", ".join(event.get("missing", ())), event.get("resets_at")
        keeps = event.get("disconnect_policy") == "keep_alive"
        facts = {
            **event,
            "waits_for": _WAITS_FOR.get(self._debate, "its turn" if self._lines is _LINES else "your turn"),
            "absent": f"; missing: {missing}" if missing else "",
            "back": f"; the quota comes back: {moment(resets_at)}" if resets_at else "",
            "chat": _CHATS.get(event.get("mode", ""), ""),
            "need": "needed" if event.get("required") else "not needed",
            "place": "your place is kept" if keeps else "your place is free",
            "less": " (your certificate entitles you to no more)" if event.get("capped") else "",
        }
        return [line.format(**facts) for line in self._lines.get(event["event"], ())]
