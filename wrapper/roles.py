"""Roles as files that a person can edit (§13.2): find one by name, list them all.

    ---
    label: Sceptic
    summary: Hands back the claims that rest on nothing.
    ---
    What the seat is told, in plain paragraphs.

A role is looked up in the folder that was given, then in ``roles/`` beside the council file, then among those
that come with Consilium; the first file found wins. ``roles/README.md`` explains the format to its writers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.errors import UserError
from wrapper.clean import clean_line, clean_text

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PROMPT_CHARS = 20_000
"""As long as the council file's ``role_prompt`` may be."""

_LIMITS = {"label": 80, "summary": 200}
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_NAME_RULE = "a role's name is lower-case letters, digits, - and _, at most 64 of them"
_FENCE = "---"
_FORMAT = "a role file is ---, one line each of label: and summary:, ---, and then the prompt"


@dataclass(frozen=True, slots=True)
class Role:
    """One role: ``label`` and ``summary`` are for people, ``prompt`` is for the client; all are cleaned."""

    name: str
    label: str
    summary: str
    prompt: str
    path: Path


def find_role(name: str, extra: Path | None = None, *, council_file: Path | None = None) -> Role:
    """The role called ``name``.

    Raises `UserError` if there is none (listing those there are), if its file does not follow the format
    (naming file and line), or if ``extra`` is not a folder.
    """
    folders = _folders(extra, council_file)
    if _NAME.fullmatch(name):
        for folder in folders:
            path = folder / f"{name}.md"
            if path.is_file():
                return read_role(path)
    known = sorted({path.stem for path in _files(folders) if _NAME.fullmatch(path.stem)})
    close = get_close_matches(name, known, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise UserError(
        f"there is no role called {clean_line(name, 64)!r}", hint=f"{meant}known: {', '.join(known)}"
    )


def list_roles(extra: Path | None = None, *, council_file: Path | None = None) -> tuple[Role, ...]:
    """Every role that `find_role` would find, by name. Raises `UserError` on the first unreadable one."""
    first: dict[str, Path] = {}
    for path in _files(_folders(extra, council_file)):
        first.setdefault(path.stem, path)
    return tuple(read_role(path) for _, path in sorted(first.items()))


def read_role(path: Path) -> Role:
    """The role in the file ``path``; a `UserError` names the file, the line and what is accepted."""
    if not _NAME.fullmatch(path.stem):
        raise UserError(f"{path}: the file's name is not one of a role", hint=_NAME_RULE)
    lines = _lines(path)
    fields, head = _front_matter(path, lines)
    return Role(path.stem, fields["label"], fields["summary"], _prompt(path, head + 1, lines[head:]), path)


def packaged_roles(module: Path = Path(__file__)) -> Path:
    """The folder of the roles that come with Consilium: in the wheel, or beside the package in a checkout."""
    for folder in (module.parent / "roles", module.parent.parent / "roles"):
        if folder.is_dir():
            return folder
    raise UserError("this installation of Consilium holds no roles", hint="install it again")


def _folders(extra: Path | None, council_file: Path | None) -> list[Path]:
    folders = []
    if extra is not None:
        if not extra.is_dir():
            raise UserError(f"{extra} is not a folder of roles", hint="give the folder that holds NAME.md")
        folders.append(extra)
    if council_file is not None and (beside := council_file.parent / "roles").is_dir():
        folders.append(beside)
    return [*folders, packaged_roles()]


def _files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (path for path in sorted(folder.glob("*.md")) if path.name != "README.md")


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: this is not UTF-8", hint="save the file as UTF-8") from error
    return text.replace("\r\n", "\n").rstrip("\n").split("\n")


def _front_matter(path: Path, lines: list[str]) -> tuple[dict[str, str], int]:
    """The fields between the two fences, and how many lines the whole of it takes."""
    if lines[0].rstrip() != _FENCE:
        raise _refusal(path, 1, f"expected {_FENCE}")
    fields: dict[str, str] = {}
    for number, line in enumerate(lines[1:], 2):
        if line.rstrip() == _FENCE:
            for key in _LIMITS:
                if key not in fields:
                    raise _refusal(path, number, f"{key} is missing")
            return fields, number
        key, value = _field(path, number, line)
        if key in fields:
            raise _refusal(path, number, f"{key} stands here a second time")
        fields[key] = value
    raise _refusal(path, len(lines), f"the file ends before the second {_FENCE}")


def _field(path: Path, number: int, line: str) -> tuple[str, str]:
    key, colon, rest = line.partition(":")
    key, value = key.strip(), " ".join(clean_text(rest).split())
    if not colon or key not in _LIMITS:
        raise _refusal(path, number, "expected label: or summary:")
    if not value:
        raise _refusal(path, number, f"{key} is empty")
    if value[0] in "\"'|>":
        raise _refusal(
            path, number, f"{key} begins with {value[0]}: write it plain, without quotes, on one line"
        )
    if len(value) > _LIMITS[key]:
        raise _refusal(path, number, f"{key} is longer than {_LIMITS[key]} characters")
    return key, value


def _prompt(path: Path, number: int, lines: list[str]) -> str:
    prompt = clean_text("\n".join(lines)).strip()
    if not prompt:
        raise _refusal(path, number, "there is no prompt after the second ---")
    if len(prompt) > MAX_PROMPT_CHARS:
        raise _refusal(path, number, f"the prompt is longer than {MAX_PROMPT_CHARS} characters")
    return prompt


def _refusal(path: Path, number: int, what: str) -> UserError:
    return UserError(f"{path}:{number}: {what}", hint=_FORMAT)
