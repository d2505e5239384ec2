"""What a seat's wrapper keeps of a chat between two lives of its process: one small file, and a lock (§6.6).

The chat itself is the client's. Kept is which one it is, and only once it has answered: an id that never
answered would poison the seat. The folder is the wrapper's; the client has no business in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from wrapper.adapters.parts import Counter

CHAT_FILE = "chat.json"
LOCK_FILE = "lock"


class KeptChat(BaseModel):
    """A seat's chat: ``id`` in the client ``preset``, begun with the system prompt of that SHA-256.

    Without an ``id`` there was a chat, and it is given up. ``counters`` are what the client had counted
    over the chat's life when it last answered, ``model`` is the one that it was asked to use. ``turn`` names
    the last turn that succeeded, where a client's files are put back after one that did not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    preset: str
    id: str | None
    system_prompt: str
    counters: dict[Counter, float] = {}
    model: str | None = None
    turn: str | None = None


def fingerprint(system_prompt: str) -> str:
    """How a kept chat remembers its system prompt."""
    return hashlib.sha256(system_prompt.encode("utf-8", "replace")).hexdigest()


def kept_chat(folder: Path) -> KeptChat | None:
    """The chat that is kept in ``folder``, or None if there never was one.

    A file that is there but cannot be understood tells of a chat which nobody can find again.
    """
    try:
        return KeptChat.model_validate_json((folder / CHAT_FILE).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError:
        return KeptChat(preset="", id=None, system_prompt="")


def keep_chat(folder: Path, chat: KeptChat) -> None:
    """Keep ``chat``, so that not even a power cut loses or halves it. Raises `OSError`."""
    write_whole(folder / CHAT_FILE, chat.model_dump_json().encode())


def write_whole(path: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``path`` at once, readable by its owner alone. Raises `OSError`.

    A link that stands there is replaced and never followed: the client may have put it there.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def lock_folder(folder: Path) -> int:
    """Take ``folder`` for this seat alone; closing the descriptor, or dying, gives it back.

    Raises `BlockingIOError` if another wrapper has it, other `OSError` if there is no such thing.
    """
    descriptor = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
