"""`images/seat/seat_entry.py`: from root to the wrapper, with the fences up, or not at all."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wrapper import login
from wrapper.isolation.fence import NamedPlace, Place

if TYPE_CHECKING:
    from types import ModuleType

FILE = Path(__file__).parent.parent / "images" / "seat" / "seat_entry.py"


@pytest.fixture(scope="module")
def entry() -> ModuleType:
    spec = importlib.util.spec_from_file_location("seat_entry", FILE)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class System:
    """What the entry point does to the machine it runs on."""

    def __init__(self, entry: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.addresses = {"egress": ["172.18.0.3"], "model": ["172.18.0.5", "172.18.0.4"], "six": ["fd00::2"]}
        self.rules = ""
        self.refusal = ""
        self.owned: dict[str, tuple[int, int]] = {}
        self.became: tuple[list[str], dict[str, str]] | None = None
        self.folder = folder
        patch = monkeypatch.setattr
        patch(os, "geteuid", lambda: 0)
        patch(os, "environ", {"PATH": "/usr/bin"})
        patch(os, "chown", lambda path, uid, gid: self.owned.update({Path(path).name: (uid, gid)}))
        patch(os, "execve", self.execve)
        patch(shutil, "which", lambda name: f"/usr/bin/{name}")
        patch(socket, "getaddrinfo", self.getaddrinfo)
        patch(subprocess, "run", self.run)
        patch(entry, "RESOLVE_SECONDS", 0.0)
        patch(entry, "SEAT", folder / "seat")
        patch(entry, "CLIENT", folder / "client")
        patch(entry, "SECRETS", folder / "secrets")

    def execve(self, _path: str, argv: list[str], environment: dict[str, str]) -> None:
        self.became = argv, environment
        raise SystemExit(99)

    def getaddrinfo(self, host: str, port: int, **_options: Any) -> list[Any]:
        if host not in self.addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(2, 1, 6, "", (address, port)) for address in self.addresses[host]]

    def run(self, _argv: list[str], *, input: str, **_options: Any) -> Any:  # noqa: A002 - its name there
        self.rules = input
        return subprocess.CompletedProcess([], int(bool(self.refusal)), "", self.refusal)


@pytest.fixture
def system(entry: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> System:
    return System(entry, tmp_path, monkeypatch)


def started(entry: ModuleType, *arguments: str, **variables: str) -> int:
    os.environ.update(variables)
    with pytest.raises(SystemExit) as ended:
        entry.main(list(arguments))
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_the_fences_stand_before_the_wrapper_runs(entry: ModuleType, system: System) -> None:
    reach = "egress:8888,model:8888"
    assert started(entry, "seat", "--name", "a", CONSILIUM_REACH=reach) == 99
    assert "meta skuid 10002 goto client" in system.rules
    for address in ("172.18.0.3", "172.18.0.4", "172.18.0.5"):
        assert f"ip daddr {address} tcp dport 8888 accept" in system.rules
    assert system.owned == {"seat": (10001, 10001), "client": (10002, 10002)}
    assert system.became is not None
    argv, environment = system.became
    assert argv[0] == "/usr/bin/setpriv"
    assert argv[-4:] == ["/usr/bin/consilium", "seat", "--name", "a"]
    assert "--no-new-privs" in argv
    assert environment["HOME"].endswith("/seat")


def test_whoever_leads_the_client_there_leads_it_by_address(entry: ModuleType, system: System) -> None:
    started(
        entry,
        *("seat", "--model-url", "http://model:8888/v1", "--topic", "[what is http://model:8888?"),
        CONSILIUM_REACH="egress:8888,model:8888,six:8888",
        HTTPS_PROXY="http://egress:8888",
        HTTP_PROXY="http://six:8888/",
        CONSILIUM_MODEL_URL="http://elsewhere:8888/v1",
    )
    assert system.became is not None
    argv, environment = system.became
    assert argv[-4:] == ["--model-url", "http://172.18.0.4:8888/v1", "--topic", "[what is http://model:8888?"]
    assert environment["HTTPS_PROXY"] == "http://172.18.0.3:8888"
    assert environment["HTTP_PROXY"] == "http://[fd00::2]:8888/"
    assert environment["CONSILIUM_MODEL_URL"] == "http://elsewhere:8888/v1"


def test_what_is_no_address_is_left_as_it_is(entry: ModuleType, system: System) -> None:
    places = {NamedPlace("model", 8888): [Place("172.18.0.4", 8888)]}
    for text in ("http://model:99999/", "http://[model:8888", "seat", "", "http://model/"):
        assert entry.by_address(text, places) == text


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"CONSILIUM_REACH": "nobody:8888"}, "nobody does not resolve"),
        ({"CONSILIUM_REACH": "egress:443"}, "is not on port 8888"),
        ({"CONSILIUM_REACH": "egress"}, "is not a host and a port"),
    ],
)
def test_a_place_that_cannot_be_reached_ends_the_start(
    entry: ModuleType,
    system: System,
    variables: dict[str, str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert started(entry, **variables) == 2
    assert words in capsys.readouterr().err
    assert system.became is None


def test_without_the_packet_fence_only_a_relaxed_seat_goes_on(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    system.refusal = "Operation not permitted\nmore"
    assert started(entry) == 2
    assert "cannot be built: Operation not permitted\n  give the container cap_add" in capsys.readouterr().err
    assert started(entry, CONSILIUM_ISOLATION="relaxed") == 99
    assert "relaxed: the client is not held back" in capsys.readouterr().err


def test_a_missing_tool_is_named(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(subprocess, "run", fail)
    assert started(entry) == 2
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    assert started(entry) == 2
    assert "nft is not in this image" in capsys.readouterr().err


def test_it_has_to_begin_as_root(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert started(entry) == 2
    assert "has to begin as root" in capsys.readouterr().err


def test_folders_of_somebody_else_are_not_taken(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    (system.folder / "seat").mkdir(mode=0o755)
    (system.folder / "seat").chmod(0o755)
    assert started(entry) == 2
    assert "has to belong to user 10001" in capsys.readouterr().err


def test_a_volume_that_cannot_be_written_is_said(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry, "SEAT", system.folder / "no" / "seat")
    assert started(entry) == 2
    assert "cannot be made: No such file or directory" in capsys.readouterr().err


def test_a_seat_s_client_has_the_user_that_the_service_gives_it(entry: ModuleType, system: System) -> None:
    assert started(entry, CONSILIUM_CLIENT_USER="10103:10104") == 99
    assert system.owned == {"seat": (10001, 10001), "client": (10103, 10104)}
    assert "10103" in system.rules
    assert "10002" not in system.rules


@pytest.mark.parametrize("user", ["0:0", "10001:10001", "cli", "10002", "10002:", "-1:5", "4294967295:1"])
def test_a_user_that_no_client_can_have_is_refused(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str], user: str
) -> None:
    assert started(entry, CONSILIUM_CLIENT_USER=user) == 2
    assert "CONSILIUM_CLIENT_USER: " in capsys.readouterr().err
    assert system.became is None


def test_a_secret_is_a_variable_of_the_wrapper_s(entry: ModuleType, system: System) -> None:
    folder = system.folder / "secrets"
    folder.mkdir()
    (folder / "CODEX_API_KEY").write_text("sk-1 2\n")
    (folder / "ANTHROPIC_API_KEY").symlink_to(os.devnull)
    assert started(entry, "seat") == 99
    assert system.became is not None
    _, environment = system.became
    assert environment["CODEX_API_KEY"] == "sk-1 2"
    assert "ANTHROPIC_API_KEY" not in environment
    assert "CODEX_API_KEY" not in os.environ


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        (("KEY", b"one\ntwo\n"), "is not one line of text"),
        (("KEY", b"x" * 16_385), "is not one line of text"),
        (("KEY", b"\xff"), "cannot be read"),
        (("KEY", b"a\x00b"), "is not one line of text"),
        (("key", b"k"), "no variable that a client could be given"),
        (("LD_PRELOAD", b"k"), "no variable that a client could be given"),
        (("CONSILIUM_ISOLATION", b"relaxed"), "no variable that a client could be given"),
        (("PATH", b"/elsewhere"), "given as a secret and as a variable"),
    ],
)
def test_a_secret_that_is_no_key_ends_the_start(
    entry: ModuleType,
    system: System,
    secret: tuple[str, bytes],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, content = secret
    folder = system.folder / "secrets"
    folder.mkdir()
    (folder / name).write_bytes(content)
    assert started(entry) == 2
    assert words in (told := capsys.readouterr().err)
    assert "elsewhere" not in told
    assert system.became is None


def test_a_secret_that_root_may_not_read_is_said(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = system.folder / "secrets"
    folder.mkdir()
    (folder / "KEY").write_text("k")

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert started(entry) == 2
    assert "root in here has no right" in capsys.readouterr().err


def test_a_login_is_the_one_of_this_service_s_seat(
    entry: ModuleType, system: System, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("seat", "--council=/c.yaml", "--certs=/certs", "--state=/s", "login")
    assert started(entry, *words, CONSILIUM_SEAT="claude") == 99
    assert system.became is not None
    argv, _ = system.became
    meant = argv[argv.index("/usr/bin/consilium") + 1 :]
    assert meant == ["seat", "login", "claude", "--council=/c.yaml", "--state=/s"]
    login.parser().parse_args(meant[2:])
    with pytest.raises(SystemExit):
        entry.meant([*words], {})
    assert "whose login this is" in capsys.readouterr().err
