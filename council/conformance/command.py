"""`consilium conformance PRESET`: does a client do what a seat needs of it? (§14.5, §3.3.B, §6.6).

Exit codes: 0 every check that applies has passed, 1 one has failed, 2 it could not be tried.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from consilium.console import MAX_WIDTH, json_text, printable
from consilium.errors import UserError
from council.conformance.bench import ADAPTERS, Bench
from council.conformance.checks import CHECKS, code, perform
from council.conformance.failures import JUDGED
from council.conformance.table import WORDS, document, listed, summary, table
from wrapper.adapters.presets import load_preset, read_preset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from council.conformance.checks import Check, Result
    from wrapper.adapters.presets import Preset

PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ")
"""What the wrapper of a try gets of our environment: no key, no proxy, no home."""

EPILOG = """\
The client is really run, some dozens of times, before a provider on loopback, with a home of its own: your
login and your configuration are neither used nor touched, and nothing is paid for.

examples:
  consilium conformance claude
  consilium conformance codex --only failures-are-told --only commands-are-text
  consilium conformance ./mine.toml --keep
  consilium conformance --list

Exit codes: 0 every check that applies has passed, 1 one has failed, 2 it could not be tried."""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    own = argparse.ArgumentParser(
        prog="consilium conformance",
        description="Check that a client, called as its preset says, keeps the rules of a seat: one exact "
        "chat, prompts that stay text, no tools unless they were asked for, failures that end well.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own.add_argument("preset", nargs="?", metavar="PRESET", help="a preset's name, or the path of its file")
    own.add_argument("--presets", type=Path, metavar="DIR", help="a folder of presets of your own")
    own.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="make this check alone; may be repeated"
    )
    own.add_argument("--list", action="store_true", help="list the checks, and what each of them says")
    own.add_argument(
        "--adapter", choices=tuple(ADAPTERS), default="native", help="how the client is driven (%(default)s)"
    )
    own.add_argument("--keep", action="store_true", help="leave the folders of the try, and say where")
    own.add_argument("--json", action="store_true", help="JSON, for programs")
    return own


def main(argv: Sequence[str]) -> int:
    """Try a preset, or list the checks. Raises `UserError` for what cannot be tried."""
    options = parser().parse_args(argv)
    checks = _chosen(options.only)
    width = min(shutil.get_terminal_size().columns, MAX_WIDTH)
    if options.list:
        told = [{"name": check.name, "says": check.says} for check in checks]
        sys.stdout.write(f"{json_text(told)}\n" if options.json else listed(checks, width))
        return 0
    preset = _preset(options.preset, options.presets)
    environment = _environment(os.environ)
    _need_what_it_takes(preset, environment)
    with _folder(keep=options.keep) as folder:
        bench = Bench(preset, folder, environment, adapter=options.adapter)
        results = anyio.run(_all, bench, checks, None if options.json else _say)
    if options.json:
        sys.stdout.write(f"{json_text(document(preset.name, options.adapter, results))}\n")
    else:
        sys.stdout.write(f"{table(results, width)}\n{preset.name}: {summary(results)}\n")
    return code(results)


async def _all(bench: Bench, checks: Sequence[Check], say: Callable[[str], None] | None) -> list[Result]:
    """Make ``checks``, and ``say`` how it goes."""
    results = []
    for number, check in enumerate(checks, 1):
        if say is not None:
            say(f"{number}/{len(checks)} {check.name} ")
        results.append(await perform(bench, check))
        if say is not None:
            say(f"{WORDS[results[-1].outcome]} ({results[-1].seconds:.1f} s)\n")
    return results


def _say(text: str) -> None:
    sys.stderr.write(printable(text))
    sys.stderr.flush()


def _chosen(names: Sequence[str]) -> list[Check]:
    known = {check.name: check for check in CHECKS}
    if unknown := [name for name in names if name not in known]:
        raise UserError(
            f"there is no check called {unknown[0]!r}", hint="`consilium conformance --list` names them"
        )
    return [check for check in CHECKS if not names or check.name in names]


def _preset(name: str | None, folder: Path | None) -> Preset:
    if name is None:
        raise UserError("which preset?", hint="consilium conformance PRESET, or --list for the checks")
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder} is not a folder", hint="--presets names one that holds presets: NAME.toml")
    if name.endswith(".toml"):
        return read_preset(Path(name))
    return load_preset(name, folder)


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.defpath, **{name: ours[name] for name in PASSED_ON if name in ours}}


def _need_what_it_takes(preset: Preset, environment: Mapping[str, str]) -> None:
    """Raise `UserError` for a client that is not here, or that cannot be led to a provider of ours."""
    if preset.conformance is None:
        raise UserError(
            f"the preset {preset.name} does not say how its client is brought before another provider",
            hint="give it a table [conformance]; docs/adapters.md tells what stands there",
        )
    if unknown := preset.conformance.faults.keys() - JUDGED:
        raise UserError(
            f"the preset {preset.name}: conformance.faults.{min(unknown)}: no check looks at that",
            hint=f"there is {', '.join(sorted(JUDGED))}",
        )
    path = os.pathsep.join((environment["PATH"], str(Path(sys.executable).parent)))
    if shutil.which(preset.executable, path=path) is None:
        raise UserError(f"{preset.executable} is not installed", hint=preset.install)


@contextmanager
def _folder(*, keep: bool) -> Iterator[Path]:
    """Where everything of the try is, until it is over."""
    if not keep:
        with tempfile.TemporaryDirectory(prefix="conformance-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    folder = Path(tempfile.mkdtemp(prefix="conformance-"))
    try:
        yield folder
    finally:
        _say(f"What the client left is in {folder}\n")
