"""`consilium roles`: the points of view that a seat can take (§13.2)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from wrapper.roles import find_role, list_roles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wrapper.roles import Role


def parser() -> argparse.ArgumentParser:
    """The command line."""
    options = argparse.ArgumentParser(
        prog="consilium roles",
        description="List the points of view that a seat can take, or show what one of them is told.",
        epilog="A council file names one with `role: NAME`; a folder `roles` beside it is looked in first.",
    )
    options.add_argument("name", nargs="?", metavar="NAME", help="show this role in full")
    options.add_argument(
        "-f", "--file", type=Path, metavar="FILE", help="include the roles beside this council file"
    )
    options.add_argument("--json", action="store_true", help="JSON, for programs")
    return options


def main(argv: Sequence[str]) -> int:
    """Print the roles, or one of them. Raises `UserError` for one that is not there."""
    options = parser().parse_args(argv)
    if options.name is not None:
        role = find_role(options.name, council_file=options.file)
        sys.stdout.write(_json(_fields(role)) if options.json else _full(role))
        return 0
    roles = list_roles(council_file=options.file)
    sys.stdout.write(_json([_fields(role) for role in roles]) if options.json else _table(roles))
    return 0


def _fields(role: Role) -> dict[str, str]:
    return {
        "name": role.name,
        "label": role.label,
        "summary": role.summary,
        "prompt": role.prompt,
        "path": str(role.path),
    }


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


def _table(roles: Sequence[Role]) -> str:
    column = max(len(role.name) for role in roles) + 2
    return "".join(f"{role.name:<{column}}{role.summary}\n" for role in roles)


def _full(role: Role) -> str:
    return f"{role.label}: {role.summary}\n\n{role.prompt}\n\n({role.path})\n"
