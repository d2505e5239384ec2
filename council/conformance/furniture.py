"""What a person or a project may have set up for a client, put where the client would find it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wrapper.adapters import templates

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MARKS = {"user": "MARK-OF-THE-USER", "project": "MARK-OF-THE-PROJECT"}
"""By whom a piece of text was set up that is found in a request."""


def furnish(files: Mapping[str, str], folder: Path, mark: str, made: Path) -> None:
    """Put the ``files`` of a preset's table ``[conformance]`` into ``folder``."""
    gaps = {"mark": mark, "made": str(made)}
    put({name: templates.fill(content, gaps) for name, content in files.items()}, folder)


def put(files: Mapping[str, str], folder: Path) -> None:
    """Put ``files`` into ``folder``, as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def furnish_own(files: Mapping[str, str], home: Path, mark: str, made: Path) -> None:
    """Put them into the folder of the client's state, where what a hidden folder holds stands bare too."""
    bare = {
        name.partition("/")[2]: content
        for name, content in files.items()
        if name.startswith(".") and "/" in name
    }
    furnish({**files, **bare}, home, mark, made)
