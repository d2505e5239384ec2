"""Looks after the client's own folder (§14.2), in the client's place where that has a user of its own.

Run as ``python -I -S keeper.py HOME`` by the client's user and behind its fence, with one JSON object on
standard input, or called with it, where the folder is the wrapper's user's own:

- ``folders`` and ``files`` (name to text) are to be made in HOME;
- ``rewind`` (``patterns``, ``claimed``): if a copy other than ``claimed`` is kept, the files that fit are put
  back as they were in it; no copy is left;
- ``copy`` (``patterns``, ``name``): the files that fit are kept under ``name``, all of them or none;
- ``proof`` is a pattern for a file that may be there.

Prints ``{"found": true}`` or ``{"found": false}``. Whatever links the client put there lead to what the
client may touch anyway: the wrapper of another user never looks into that folder itself.
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

COPIES = ".consilium-before"
"""Where copies are kept, below HOME."""


def main(home: Path, request: dict[str, Any]) -> int:
    """Do what ``request`` says in ``home``, and print whether the proof was found."""
    os.umask(0o077)
    sys.stdout.write(json.dumps({"found": perform(home, request)}))
    return 0


def perform(home: Path, request: dict[str, Any]) -> bool:
    """Do what ``request`` says in ``home``; whether the proof was found. Raises `OSError`."""
    for name in request.get("folders", ()):
        _folder(home / name)
    if rewind := request.get("rewind"):
        _rewind(home, rewind["patterns"], rewind["claimed"])
    for name, text in request.get("files", {}).items():
        for parent in reversed((home / name).relative_to(home).parents[:-1]):
            _folder(home / parent)
        _put(home / name, text.encode("utf-8", "replace"))
    if copy := request.get("copy"):
        _copy(home, copy["patterns"], copy["name"])
    proof: str = request.get("proof", "")
    return bool(proof) and any(home.glob(proof))


def _folder(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        _clear(path)
        path.mkdir(mode=0o700)
    path.chmod(0o700)


def _fitting(home: Path, patterns: list[str]) -> list[Path]:
    """The plain files that fit, relative to ``home``, and none that is reached by a link."""
    real = home.resolve()
    return sorted(
        {
            path.relative_to(home)
            for pattern in patterns
            for path in home.glob(pattern)
            if stat.S_ISREG(path.lstat().st_mode)
            and path.parent.resolve() == real / path.parent.relative_to(home)
        }
    )


def _copy(home: Path, patterns: list[str], name: str) -> None:
    unfinished = home / f"{COPIES}.tmp"
    _clear(unfinished)
    unfinished.mkdir()
    for path in _fitting(home, patterns):
        (unfinished / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(home / path, unfinished / path, follow_symlinks=False)
    _clear(home / COPIES)
    (home / COPIES).mkdir()
    unfinished.rename(home / COPIES / name)


def _rewind(home: Path, patterns: list[str], claimed: str | None) -> None:
    kept = sorted((home / COPIES).iterdir()) if (home / COPIES).is_dir() else []
    for copy in kept:
        if copy.name == claimed:
            continue
        for path in _fitting(home, patterns):
            if not (copy / path).exists():
                (home / path).unlink()
        for path in sorted(copy.rglob("*")):
            if path.is_file():
                _put_back(path, home / path.relative_to(copy))
    _clear(home / COPIES)


def _put_back(kept: Path, path: Path) -> None:
    """Copied and not moved: whoever is killed in between begins again with the same copy."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.back")
    _clear(written)
    shutil.copyfile(kept, written, follow_symlinks=False)
    if not path.is_symlink() and path.is_dir():
        _clear(path)
    written.replace(path)


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
