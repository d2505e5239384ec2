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

import errno
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

COPIES = ".consilium-before"
"""Where copies are kept, below HOME."""

MAX_FILES, MAX_BYTES = 2000, 256 * 1024 * 1024
"""What is copied at most, before a turn or after it. A client decides how much that is, and how much it only
seems to be: a file that is all hole takes no room until it is copied."""

_CHUNK = 1024 * 1024


def main(home: Path, request: dict[str, Any]) -> int:
    """Do what ``request`` says in ``home``, and print whether the proof was found."""
    os.umask(0o077)
    sys.stdout.write(json.dumps({"found": perform(home, request)}))
    return 0


def perform(home: Path, request: dict[str, Any]) -> bool:
    """Do what ``request`` says in ``home``; whether the proof was found. Raises `OSError`."""
    try:
        return _performed(home, request)
    except RecursionError:
        raise OSError(errno.ELOOP, f"folders are nested too deep below {home}") from None


def _performed(home: Path, request: dict[str, Any]) -> bool:
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
    found = (
        path.relative_to(home)
        for pattern in patterns
        for path in home.glob(pattern)
        if stat.S_ISREG(path.lstat().st_mode)
        and path.parent.resolve() == real / path.parent.relative_to(home)
    )
    return sorted(set(_few(home, found)))


def _few(where: Path, found: Iterator[Path]) -> Iterator[Path]:
    """What is ``found``. Raises `OSError` at the file that is one too many."""
    yield from itertools.islice(found, MAX_FILES)
    if next(found, None) is not None:
        raise OSError(errno.EFBIG, f"there are more than {MAX_FILES} files to copy below {where}")


def _copy_files(pairs: list[tuple[Path, Path]]) -> None:
    """Copy each first to its second. Raises `OSError` before the first one if they are too large together."""
    sizes = [source.lstat().st_size for source, _ in pairs]
    if sum(sizes) > MAX_BYTES:
        largest, _ = pairs[sizes.index(max(sizes))]
        raise OSError(
            errno.EFBIG, f"more than {MAX_BYTES >> 20} MiB are to be copied; the largest is {largest}"
        )
    for (source, target), size in zip(pairs, sizes, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)
        _copy_file(source, target, size)


def _copy_file(source: Path, target: Path, size: int) -> None:
    """Copy ``size`` bytes: somebody may write to a file for as long as it is read."""
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as given, target.open("xb") as made:
        while size > 0 and (piece := given.read(min(size, _CHUNK))):
            made.write(piece)
            size -= len(piece)


def _copy(home: Path, patterns: list[str], name: str) -> None:
    unfinished = home / f"{COPIES}.tmp"
    _clear(unfinished)
    unfinished.mkdir()
    _copy_files([(home / path, unfinished / path) for path in _fitting(home, patterns)])
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
        _put_back(copy, home)
    _clear(home / COPIES)


def _put_back(copy: Path, home: Path) -> None:
    """Copied and not moved: whoever is killed in between begins again with the same copy."""
    found = (path for path in copy.rglob("*") if stat.S_ISREG(path.lstat().st_mode))
    kept = sorted(_few(copy, found))
    places = [home / path.relative_to(copy) for path in kept]
    written = [path.with_name(f".{path.name}.back") for path in places]
    for path in written:
        _clear(path)
    _copy_files(list(zip(kept, written, strict=True)))
    for made, path in zip(written, places, strict=True):
        if not path.is_symlink() and path.is_dir():
            _clear(path)
        made.replace(path)


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
