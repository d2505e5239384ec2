"""`consilium doctor`: what a machine has, what it lacks, and the next step; with stand-in programs."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from consilium.errors import UserError
from consilium.settings import load_council
from council import checkup, doctor
from council.checkup import Machine
from wrapper import login
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    pass

STANDINS = Path(__file__).parents[1] / "standins"

COUNCIL = """\
topic: Wrap it?
caps: {max_rounds: 1}
participants:
"""

SAYS = """\
#!/bin/sh
case "$*" in
  --version) echo "%s" ;;
  "%s") %s ;;
  *) exec %s -I -S %s "$@" ;;
esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for PATH with nothing of anybody's client in it, and a HOME without a login."""
    folder = tmp_path / "bin"
    folder.mkdir()
    python = Path(sys.executable).parent
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    (folder / "python").symlink_to(python / "python")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("ANTHROPIC_API_KEY", "CODEX_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CONSILIUM_MODEL_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


def install(programs: Path, version: str = "2.1.332 (Claude Code)", *, logged_in: str = "exit 1") -> None:
    """Put a program `claude` there, which answers as the stand-in does."""
    program = programs / "claude"
    python = programs / "python"
    program.write_text(SAYS % (version, "auth status", logged_in, python, STANDINS / "claude_standin.py"))
    program.chmod(0o755)


def looked(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
    """The exit code, what is said of each client, and of the machine."""
    code = doctor.main([*argv, "--json"])
    told = json.loads(capsys.readouterr().out)
    return code, {one["name"]: one for one in told["clients"]}, told["machine"]


def missing(client: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["what"], one["step"]) for one in client["troubles"] if one["weight"] == "missing"]


@pytest.mark.usefixtures("programs")
def test_what_is_not_installed_is_said_with_how_to_get_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, clients, _ = looked(capsys, "claude")
    assert code == 1
    (trouble,) = missing(clients["claude"])
    assert trouble[0].startswith("claude is not installed")
    assert trouble[1] == load_preset("claude").install


def test_a_client_that_is_logged_in_is_usable(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(programs, logged_in="exit 0")
    code, clients, machine = looked(capsys, "claude", "human")
    assert code == 0
    claude = clients["claude"]
    assert claude["usable"] is True
    assert claude["path"] == str(programs / "claude")
    assert (claude["version"], claude["known_good"]) == ("2.1.332", "2.1.332")
    assert claude["profiles"] == ["restricted", "native"]
    assert claude["login"] == "yes: says `claude auth status`"
    assert claude["probe"] == ""
    assert clients["human"]["usable"] is True
    assert machine["nft"] == bool(shutil.which("nft"))


def test_a_client_that_nobody_here_has_run_is_told_as_that(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (programs / "agy").write_text("#!/bin/sh\necho 1.2.14\n")
    (programs / "agy").chmod(0o755)
    assert doctor.main(["antigravity"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert "agy 1.2.14 profiles" in words
    assert "1.2.14 was never run with its preset, which is written from its documentation" in words


def test_a_client_without_a_login_is_told_both_ways(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(programs)
    code, clients, _ = looked(capsys, "claude")
    assert code == 1
    assert missing(clients["claude"]) == [
        (
            "not logged in: says `claude auth status`",
            "set ANTHROPIC_API_KEY, and name it in the participant's `env`; or `claude auth login`",
        )
    ]


def test_a_key_in_the_environment_is_a_login_that_nobody_has_tried(
    programs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(programs)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "x")
    code, clients, _ = looked(capsys, "claude")
    assert (code, clients["claude"]["login"]) == (0, "yes: by ANTHROPIC_API_KEY, untried")


def test_a_client_that_hangs_when_it_is_asked_is_unknown(
    programs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "STATUS_BOUNDS", Bounds(overall=0.3))
    install(programs, logged_in="sleep 30")
    code, clients, _ = looked(capsys, "claude")
    assert (code, clients["claude"]["login"]) == (0, "unknown: nothing says `claude auth status`")


@pytest.mark.parametrize(
    ("version", "usable", "words"),
    [
        ("2.1.100 (Claude Code)", False, "claude 2.1.100 is too old; it has to be 2.1.332 at least"),
        ("99.0 (Claude Code)", True, "99.0 is newer than 2.1.332, the last that was tried with it"),
        ("hello", False, "claude --version says no version: hello"),
    ],
)
def test_the_version_is_compared(
    programs: Path, capsys: pytest.CaptureFixture[str], version: str, usable: bool, words: str
) -> None:
    install(programs, version, logged_in="exit 0")
    _, clients, _ = looked(capsys, "claude")
    assert clients["claude"]["usable"] is usable
    assert words in [one["what"] for one in clients["claude"]["troubles"]]


def test_every_client_is_looked_at_when_none_is_named(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, clients, _ = looked(capsys)
    assert code == 1, "a person is no client"
    assert {"claude", "codex", "llm", "human"} <= clients.keys()
    install(programs, logged_in="exit 0")
    code, clients, _ = looked(capsys)
    assert code == 0
    assert not clients["codex"]["usable"]


def test_the_seats_of_a_council_file_are_looked_at_as_they_are(
    programs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install(programs)
    file = tmp_path / "council.yaml"
    file.write_text(
        COUNCIL
        + """\
  - {name: ada, preset: claude, env: [ANTHROPIC_API_KEY], role: sceptik}
  - {name: bob, preset: claude, harness_profile: native, cwd: nowhere, isolation: strict}
  - {name: eva, preset: human}
  - {name: llm, preset: llm}
  - {name: kim, preset: claude, env: [OTHER]}
  - {name: zoe, preset: opencode}
"""
    )
    machine = Machine(landlock=0, nft=False, docker=False)
    assert machine.sentence() == "no Landlock in the kernel, no nft, no docker"
    code, clients, _ = looked(capsys, "--council", str(file))
    assert code == 1
    ada, bob = missing(clients["ada"]), missing(clients["bob"])
    assert clients["ada"]["troubles"][0] == {
        "what": "the variable ANTHROPIC_API_KEY is not set, which env passes on",
        "step": "export ANTHROPIC_API_KEY=...",
        "weight": "note",
    }
    assert ada[0][0] == "there is no role called 'sceptik'"
    assert ada[1][1] == (f"set ANTHROPIC_API_KEY; or `consilium seat login ada --council {file} --state DIR`")
    assert missing(clients["kim"])[0][0] == "the variable OTHER is not set, which env passes on"
    assert bob[0][0] == f"cwd: {tmp_path / 'nowhere'} is not a folder"
    assert clients["eva"]["usable"] is True
    assert "a seat needs the setting model" in [what for what, _ in missing(clients["zoe"])]
    assert [one["step"] for one in clients["llm"]["troubles"] if one["weight"] == "note"] == [
        "`consilium up` sets it"
    ]


def test_a_client_that_cannot_be_used_in_a_terminal_is_said_as_it_is_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "council.yaml"
    file.write_text(
        COUNCIL
        + """\
  - {name: ada, preset: gemini, adapter: pexpect}
  - {name: bob, preset: codex, adapter: pexpect}
  - {name: eva, preset: claude, adapter: pexpect}
"""
    )
    machine = Machine(landlock=4, nft=True, docker=True)
    told = [list(checkup.check_seat(seat, file, machine)) for seat in load_council(file).participants]
    assert [[trouble.what for trouble in troubles] for troubles in told] == [
        ["the client gemini cannot be used in a terminal: its preset has no [terminal]"],
        ["the client codex has no harness profile restricted in a terminal"],
        [],
    ]


def test_strict_isolation_needs_what_it_needs(tmp_path: Path) -> None:
    file = tmp_path / "council.yaml"
    file.write_text(COUNCIL + "  - {name: bob, preset: llm, isolation: strict}\n")
    (seat,) = load_council(file).participants
    with_all = Machine(landlock=4, nft=True, docker=True)
    assert list(checkup.check_seat(seat, file, with_all)) == []
    (trouble,) = checkup.check_seat(seat, file, Machine(landlock=4, nft=False, docker=True))
    assert trouble.what == "isolation: strict, and this machine has Landlock 4, no nft, docker"


def test_the_login_in_a_seats_state_is_found(
    programs: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    install(programs, logged_in='[ -e "$HOME/login" ]')
    file = tmp_path / "council.yaml"
    file.write_text(COUNCIL + "  - {name: ada, preset: claude, env: [ANTHROPIC_API_KEY]}\n")
    argv = ("--council", str(file), "--state", str(tmp_path / "state"))
    assert looked(capsys, *argv)[0] == 1
    (tmp_path / "state" / "ada" / "home" / "login").touch()
    assert looked(capsys, *argv)[0] == 0


def test_a_probe_is_one_real_turn_and_says_what_it_cost(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(programs, logged_in="exit 0")
    code, clients, _ = looked(capsys, "claude", "--probe")
    assert code == 0, clients
    said = clients["claude"]["probe"]
    assert said.startswith("answered ")
    assert "tokens in" in said


def test_a_probe_that_fails_makes_a_client_unusable(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(programs, logged_in="exit 0")
    program = programs / "claude"
    program.write_text(program.read_text().replace("exec ", "echo no network >&2; exit 3; exec "))
    code, clients, _ = looked(capsys, "claude", "--probe")
    assert code == 1
    (trouble,) = missing(clients["claude"])
    assert trouble[0].startswith("a turn failed: client_error: claude ended with exit code 3: no network")


def test_it_is_told_in_lines(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(programs, "99.0 (Claude Code)")
    assert doctor.main(["claude", "human"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("claude: not usable\n  program   ")
    assert "  login     no: says `claude auth status`\n" in said
    assert "  note      99.0 is newer than 2.1.332" in said
    assert "  missing   not logged in" in said
    assert "  next      set ANTHROPIC_API_KEY" in said
    assert "human: usable\n" in said
    assert "\nmachine   " in said


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["claud"], "there is no preset called 'claud'"),
        (["claude", "--council", "council.yaml"], "name clients, or a council file"),
        (["claude", "--state", "x"], "--state goes with --council"),
    ],
)
def test_what_cannot_be_looked_at(argv: list[str], words: str) -> None:
    with pytest.raises(UserError, match=words):
        doctor.main(argv)


def test_progress_is_said_while_it_takes_long(
    programs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "TICK_SECONDS", 0.1)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    install(programs, logged_in="sleep 1")
    doctor.main(["claude"])
    assert "looking at claude ..." in capsys.readouterr().err
