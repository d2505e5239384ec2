"""The attributed envelope in which a turn's context reaches a client (§14.5).

1. A line that does not begin with ``>`` is ours. Every line of text that somebody else wrote is prefixed,
   so none can begin with a character that a client takes for a command, whatever that client is.
2. Our marker stands only on our lines, with the nonce of the turn. An imitation, in any dress, is kept
   and visibly broken.
3. What a client interprets *inside* a line is shown by its full-width twin, which a reader reads the
   same and no client expands: ``@`` before a path (a file would be read and sent, tools or no tools),
   ``$`` before a name (a skill), ``<`` and ``[`` before a tag (a chat template's control token), and the
   end-of-response token (§12). `_TWINS` is the list.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from string import ascii_lowercase
from typing import TYPE_CHECKING

from consilium.messages import Phase
from wrapper.clean import boundary, clean_line, clean_text
from wrapper.prompts import END_TOKEN, MARKER

if TYPE_CHECKING:
    from consilium.messages import Context, DeltaEntry

MODERATOR = "moderator"
"""How the Arbiter names the speaker of what the operator injects (§9.7)."""

TOPIC_CHARS = 8000
LABEL_CHARS = 120

_NONCE = re.compile(r"[0-9a-f]{16,}")

_TWINS = (
    # Claude Code at the start of a word, Gemini CLI and Qwen Code anywhere, e-mail addresses included.
    (re.compile("@"), "\uff20"),
    # Codex: $skill anywhere. A sum of money stays as it is.
    (re.compile(r"\$(?=[\w-])(?!\d[\d.,]*+(?![\w-]))"), "\uff04"),
    # <|im_start|>, </s>, <start_of_turn>, <system-reminder>: parsed by local models out of plain text.
    (re.compile("<(?=[|\uff5c/!?A-Za-z])"), "\uff1c"),
    # [INST], [/INST], [TOOL_CALLS]
    (re.compile(r"\[(?=/?[A-Z_]+\])"), "\uff3b"),
    (re.compile(f"{re.escape(END_TOKEN[0])}(?={re.escape(END_TOKEN[1:])})"), "\uff3f"),
)

# Letters that pass for those of the marker, after compatibility forms, case and accents are folded: Cyrillic,
# Greek, Armenian, small capitals, Lisu, Cherokee, digits, and the squared and circled letters that have no
# compatibility form. i and l, with all that looks like either, are dropped from both sides. The list need
# not be complete: the prefix and the nonce hold without it, and it only spares a reader the confusion.
_LOOK_ALIKES = str.maketrans(
    {
        **{
            chr(first + place): letter
            for first in (0x1F150, 0x1F170, 0x1F1E6)
            for place, letter in enumerate(ascii_lowercase)
        },
        **dict.fromkeys("\u0441\u03f2\u1d04\ua4da\u13df", "c"),
        **dict.fromkeys("0\u043e\u03bf\u0585\u1d0f\ua4f3", "o"),
        **dict.fromkeys("\u043f\u03bd\u03b7\u0578\u057c\u0274\ua4e0", "n"),
        **dict.fromkeys("5\u0455\ua731\ua4e2\u13da", "s"),
        **dict.fromkeys("\u03c5\u057d\u1d1c\u028b\ua4f4", "u"),
        **dict.fromkeys("\u043c\u03bc\u1d0d\ua4df\u13b7", "m"),
        **dict.fromkeys("7\u0442\u03c4\u1d1b\ua4d4\u13a2", "t"),
        **dict.fromkeys("\u0433\u0280\ua4e3\u13d2", "r"),
        **dict.fromkeys("8\u044c\u0432\u03b2\u0299\u0185\ua4d0\u13f4", "b"),
        **dict.fromkeys("1il\u0456\u0131\u03b9\u026a\u029f\u04cf\u01c0\ua4f2\ua4e1\u13de", None),
        **dict.fromkeys("\U0001f158\U0001f178\U0001f1ee\U0001f15b\U0001f17b\U0001f1f1", None),
    }
)
_BROKEN = " (not a marker) "
_HEADER_ONLY = str.maketrans("[]|\uff3b\uff3d\uff5c", "()/()/")


def assemble(
    context: Context, nonce: str, *, limit_chars: int, phase_instruction: str, first: bool = False
) -> str:
    """The text that is given to a seat's client for its turn.

    ``nonce`` is 16 or more lower-case hexadecimal digits, fresh for every turn; anything else raises
    `ValueError`. ``limit_chars`` bounds each contribution. ``phase_instruction`` is ours and stands as it
    is. ``first`` says that nobody has spoken in this debate yet, which an empty delta alone does not:
    openings may be sealed, and a seat may join late.
    """
    if _NONCE.fullmatch(nonce) is None:
        raise ValueError("the nonce of a turn is at least 16 lower-case hexadecimal digits")
    total = len(context.delta)
    parts = [
        "\n".join(("The topic of the debate:", *_quoted(context.topic, TOPIC_CHARS))),
        phase_instruction,
        _overview(context.phase, total, context.waiting, first=first),
    ]
    for number, entry in enumerate(context.delta, 1):
        parts.append(_contribution(entry, f"{number} of {total}", nonce, limit_chars))
    parts.append("It is your turn. Answer now.")
    return "\n\n".join(parts)


def _overview(phase: Phase, total: int, waiting: int, *, first: bool) -> str:
    if waiting:
        # Who was long away has to know that it does not know everything yet.
        return (
            f"Contributions that are new to you: {total}, the oldest. There was no room for {waiting} newer"
            f" {'one' if waiting == 1 else 'ones'}: more of them with your next turn."
        )
    if total:
        return f"Contributions that are new to you: {total}."
    if first:
        return "You are the first to speak."
    if phase is Phase.OPENING:
        return "No contribution has been shown to you yet."
    return "No new contribution since your last turn."


def _contribution(entry: DeltaEntry, place: str, nonce: str, limit_chars: int) -> str:
    """One entry between its markers. Only the Arbiter's own name for the moderator is the moderator."""
    fields = [f"{MARKER} {place}", nonce]
    if entry.speaker == MODERATOR:
        fields.append("from the moderator")
    else:
        fields.append(f"from participant {_header_field(entry.speaker)}")
        if entry.role_label is not None:
            fields.append(f"role {_header_field(entry.role_label)}")
    body = _quoted(entry.text, limit_chars)
    return "\n".join((f"[[{' | '.join(fields)}]]", *body, f"[[{MARKER} {place} ends | {nonce}]]"))


def _quoted(text: str, limit: int) -> list[str]:
    """Somebody else's text as prefixed lines, with our note when it was cut or holds nothing."""
    text = clean_text(text)
    if not text.strip():
        return ["(There was no readable text in it.)"]
    end = boundary(text, limit)
    lines = [f"> {line}".rstrip() for line in _defused(text[:end].rstrip()).split("\n")]
    if end < len(text):
        lines.append(f"(Cut here: it was longer by {len(text) - end} characters.)")
    return lines


def _header_field(text: str) -> str:
    """Somebody else's words inside a marker line: one line, bounded, unable to close it or to add a field."""
    return _defused(clean_line(text, LABEL_CHARS)).translate(_HEADER_ONLY) or "(unnamed)"


def _defused(text: str) -> str:
    """``text`` with imitations of the marker broken and with the twins of what clients interpret."""
    text = _break_imitations(text)
    for pattern, twin in _TWINS:
        text = pattern.sub(twin, text)
    return text


def _break_imitations(text: str) -> str:
    """Put a visible note into the middle of everything that a reader could take for the marker.

    Compares what is left when case, accents, width, look-alikes, spacing and line breaks are taken away.
    """
    folded, origin = _fold(text)
    first_word = len(_fold(MARKER.split()[0])[0])
    pieces: list[str] = []
    done = 0
    for match in _IMITATION.finditer(folded):
        middle = origin[match.start() + first_word]
        pieces += (text[done:middle], _BROKEN)
        done = middle
    return "".join((*pieces, text[done:]))


def _fold(text: str) -> tuple[str, list[int]]:
    """The letters and digits of ``text`` as the eye compares them, and where each of them came from."""
    letters: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(text):
        plain = _plain(char)
        letters.append(plain)
        origin += [index] * len(plain)
    return "".join(letters), origin


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    folded = unicodedata.normalize("NFKD", char).casefold().translate(_LOOK_ALIKES)
    return "".join(letter for letter in folded if letter.isalnum())


_IMITATION = re.compile(re.escape(_fold(MARKER)[0]))
