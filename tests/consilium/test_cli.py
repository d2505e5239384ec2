"""`consilium`: the one command, what it says, and what it returns."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import types
from typing import TYPE_CHECKING

import pytest

from consilium import __version__, cli
from consilium.errors import TranscriptError, UserError

if TYPE_CHECKING:
    from collections.abc import Callable

HEAVY = ("pydantic", "pydantic_settings", "anyio", "cryptography", "orjson", "OpenSSL", "prometheus_client")

MISSING = "consilium: 'try' needs {}, which is not installed here\n  {}\n"
PARTIAL = "this installation holds only some of Consilium's parts"


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # the options are for run
        [sys.executable, "-m", "consilium", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[list[str]], int]], None]:
    """Put a function in the place of the subcommand `try`."""

    def register(function: Callable[[list[str]], int]) -> None:
        module = types.ModuleType("tried")
        module.main = function  # type: ignore[attr-defined]  # that is what a module of ours has
        monkeypatch.setitem(sys.modules, "tried", module)
        monkeypatch.setitem(cli.COMMANDS, "try", ("tried:main", "nothing"))

    return register


def failing(error: BaseException) -> Callable[[list[str]], int]:
    def main(argv: list[str]) -> int:
        raise error

    return main


# --- what it says of itself ----------------------------------------------------------------------------


def test_it_promises_of_the_authority_what_the_authority_s_own_commands_do() -> None:
    words = cli.COMMANDS["pki"][1]
    promised = set(re.findall(r"[a-z]+", words)) & {"issue", "renew", "revoke", "bundle", "show", "verify"}
    commands = run("pki", "--help").stdout
    assert promised >= {"issue", "show"}
    assert all(re.search(rf"^ +{name} ", commands, re.MULTILINE) for name in promised)


@pytest.mark.parametrize("option", ["--version", "-V"])
def test_version_is_one_line(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([option]) == 0
    assert capsys.readouterr().out == f"consilium {__version__}\n"


def test_version_imports_nothing_heavy() -> None:
    code = (
        "import sys, consilium.cli as c; c.main(['--version']);"
        f" print([m for m in {HEAVY} if m in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == [f"consilium {__version__}", "[]"]


def test_version_imports_not_even_the_option_parser() -> None:
    code = "import sys, consilium.cli as c; c.main(['--version']); print('argparse' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines()[1] == "False"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_names_every_command_and_gives_examples(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 0
    told = capsys.readouterr().out
    for name, (_, summary) in cli.COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", told, re.MULTILINE)
    assert "examples:\n  consilium up\n" in told


def test_every_command_stands_in_one_group_of_the_help() -> None:
    grouped = [name for names in cli.GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(cli.COMMANDS)


def test_every_example_of_the_help_is_a_command_that_is_there() -> None:
    named = re.findall(r"consilium (\w+)", cli.EXAMPLES)
    assert named
    assert set(named) - {"COMMAND"} <= set(cli.COMMANDS)


def test_without_a_command_the_help_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("usage: consilium COMMAND")


def test_help_for_a_command_is_that_commands_help(
    command: Callable[[Callable[[list[str]], int]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[str] = []

    def main(argv: list[str]) -> int:
        given.extend(argv)
        return 0

    command(main)
    assert cli.main(["help", "try"]) == 0
    assert given == ["--help"]


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_explains_itself(name: str) -> None:
    told = run(name, "--help")
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(f"usage: consilium {name}")


# --- dispatch ------------------------------------------------------------------------------------------


def test_a_command_is_given_the_rest_of_the_line_and_its_code_is_ours(
    command: Callable[[Callable[[list[str]], int]], None],
) -> None:
    command(len)
    assert cli.main(["try", "a", "--version"]) == 2


def test_without_arguments_the_process_s_own_are_taken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["consilium", "--version"])
    assert cli.main() == 0
    assert capsys.readouterr().out == f"consilium {__version__}\n"


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("transcrip", "did you mean transcript?"),
        ("zzz", "`consilium --help` lists the commands"),
    ],
)
def test_an_unknown_command_is_told_the_nearest(
    typed: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([typed]) == 2
    assert capsys.readouterr().err == f"consilium: there is no command {typed!r}\n  {hint}\n"


def test_an_unknown_option_is_told_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--verion"]) == 2
    assert capsys.readouterr().err == (
        "consilium: there is no option '--verion'\n  did you mean --version?\n"
    )


# --- failures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told", "code"),
    [
        (UserError("no such file", hint="make one"), "consilium: no such file\n  make one\n", 2),
        (UserError("no"), "consilium: no\n", 2),
        (TranscriptError("line 3 is torn"), "consilium: line 3 is torn\n", 1),
        (
            ModuleNotFoundError("", name="xllamacpp.sub"),
            MISSING.format("xllamacpp.sub", "in a clone of Consilium: pip install '.[embedded]'"),
            2,
        ),
        (
            ModuleNotFoundError("", name="arbiter.main"),
            MISSING.format("arbiter.main", f"{PARTIAL}; install the whole package"),
            2,
        ),
        (
            ModuleNotFoundError("", name="yaml"),
            MISSING.format("yaml", "install consilium again, with its dependencies"),
            2,
        ),
    ],
)
def test_what_a_person_can_mend_is_told_without_a_traceback(
    command: Callable[[Callable[[list[str]], int]], None],
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    told: str,
    code: int,
) -> None:
    command(failing(error))
    assert cli.main(["try"]) == code
    assert capsys.readouterr().err == told


def test_a_refusal_cannot_command_the_terminal(
    command: Callable[[Callable[[list[str]], int]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    command(failing(UserError("file \x1b[2Jname", hint="\x9b31m")))
    assert cli.main(["try"]) == 2
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", capsys.readouterr().err)


def test_a_part_that_is_not_installed_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(cli.COMMANDS, "try", ("council.no_such_part:main", "nothing"))
    assert cli.main(["try"]) == 2
    assert "'try' needs council.no_such_part, which is not installed here" in capsys.readouterr().err


def test_a_bug_is_not_dressed_up(command: Callable[[Callable[[list[str]], int]], None]) -> None:
    command(failing(ZeroDivisionError("ours")))
    with pytest.raises(ZeroDivisionError):
        cli.main(["try"])


@pytest.mark.parametrize(("stop", "code"), [(SystemExit(3), 3), (SystemExit("why"), 1)])
def test_a_command_that_exits_gives_its_code(
    command: Callable[[Callable[[list[str]], int]], None], stop: SystemExit, code: int
) -> None:
    command(failing(stop))
    assert cli.main(["try"]) == code


def test_an_interruption_is_130(command: Callable[[Callable[[list[str]], int]], None]) -> None:
    command(failing(KeyboardInterrupt()))
    assert cli.main(["try"]) == 130


def test_a_reader_who_leaves_is_no_error() -> None:
    shell = f"{sys.executable} -m consilium help | true; echo ${{PIPESTATUS[0]}}"
    told = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    assert told.stderr == ""
    assert told.stdout in {"141\n", "0\n"}  # whether the reader left before we wrote is theirs to choose


def test_a_reader_who_left_before_we_wrote_is_141() -> None:
    code = (
        "import os, sys; from consilium import cli; r, w = os.pipe(); os.close(r); os.dup2(w, 1);"
        " sys.exit(cli.main(['--help']))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (141, "")


def test_a_reader_who_left_while_a_command_wrote_is_141(
    command: Callable[[Callable[[list[str]], int]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    silenced: list[int] = []
    monkeypatch.setattr(os, "dup2", lambda _, fd: silenced.append(fd))
    command(failing(BrokenPipeError()))
    assert cli.main(["try"]) == 141
    assert silenced == [1]


def test_without_streams_there_is_nothing_to_say_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(["--version"]) == 0
    assert cli.main(["roles", "no-such-role"]) == 2


def test_without_a_standard_output_it_still_returns() -> None:
    shell = f"{sys.executable} -m consilium --version >&-"
    assert subprocess.run(["bash", "-c", shell], check=False).returncode == 0


def test_a_character_that_the_terminal_lacks_ends_nothing() -> None:
    told = run("roles", "sceptic", env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin:/bin"})
    assert told.returncode == 0


def test_sigint_ends_it_without_a_traceback() -> None:
    code = (
        "import os, signal, sys, types; from consilium import cli;"
        " m = types.ModuleType('tried'); m.main = lambda a: os.kill(os.getpid(), signal.SIGINT);"
        " sys.modules['tried'] = m; cli.COMMANDS['try'] = ('tried:main', ''); sys.exit(cli.main(['try']))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stderr) == (128 + signal.SIGINT, "")
