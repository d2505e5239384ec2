"""Looks after the client's own folder, in the client's place (§14.2).

Run as ``python -I -S keeper.py HOME`` by the client's user and behind its fence, with one JSON object on
standard input: ``folders`` and ``files`` (name to text) to be made in HOME, and ``proof``, a pattern for a
file that may be there. Prints ``{"found": true}`` or ``{"found": false}``. Whatever links the client put
there lead to what the client may touch anyway: the wrapper never looks into that folder itself.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any


def main(home: Path, request: dict[str, Any]) -> int:
    """Do what ``request`` says in ``home``."""
    os.umask(0o077)
    for name in request["folders"]:
        if not (home / name).is_dir():
            _clear(home / name)
            (home / name).mkdir()
    for name, text in request["files"].items():
        _put(home / name, text.encode("utf-8", "replace"))
    found = bool(request["proof"]) and any(home.glob(request["proof"]))
    sys.stdout.write(json.dumps({"found": found}))
    return 0


def _put(path: Path, data: bytes) -> None:
    if _holds(path, data):
        return
    descriptor, written = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if not path.is_symlink() and path.is_dir():
        _clear(path)
    Path(written).replace(path)


def _holds(path: Path, data: bytes) -> bool:
    """Whether ``data`` is what is there; what is longer is not read to its end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:  # not there, a link, or nothing that can be read
        return False
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return False
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(len(data) + 1) == data
    finally:
        os.close(descriptor)


def _clear(path: Path) -> None:
    """Take away what the client put in the place of something of another kind."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        sys.exit(main(Path(sys.argv[1]), json.load(sys.stdin)))
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)
