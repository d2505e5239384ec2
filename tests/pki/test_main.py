"""``consilium pki`` as a person meets it: what it says, and its exit codes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import orjson
import pytest
from certificates import forge_root, issue_odd

from consilium.certificate import identify, identify_arbiter
from consilium.credentials import Credentials
from pki.main import main, parser

if TYPE_CHECKING:
    from pathlib import Path


NAMES = ["init", "issue", "invite", "renew", "revoke", "crl", "list", "bundle", "show", "verify"]


@pytest.fixture
def pki(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "certs"
    assert main(["init", str(folder)]) == 0
    capsys.readouterr()
    return folder


def test_init_makes_an_authority_and_says_what_comes_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certs"
    assert main(["init", str(folder), "--trust-domain", "council.example", "--days", "7"]) == 0
    out = capsys.readouterr().out
    assert "subject      Consilium CA council.example\n" in out
    assert "valid for another 6 days" in out
    assert out.endswith(f"next: consilium pki issue {folder} NAME --profile participant\n")


def test_issue_makes_a_folder_for_each_profile(pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["issue", str(pki), "seat", "--profile", "participant"]) == 0
    assert main(["issue", str(pki), "anna", "--profile", "operator", "--days", "7"]) == 0
    hosts = ["--dns", "arbiter", "--dns", "localhost", "--ip", "127.0.0.1"]
    assert main(["issue", str(pki), "hub", "--profile", "arbiter", *hosts]) == 0
    seat = identify(Credentials.load(pki / "seat").leaf())
    anna = identify(Credentials.load(pki / "anna").leaf())
    hub = identify_arbiter(Credentials.load(pki / "hub").leaf())
    assert (seat.profile, seat.lifetime_days) == ("participant", 30)
    assert (anna.profile, anna.lifetime_days) == ("operator", 7)
    assert (hub.profile, hub.subject) == ("arbiter", "hub")
    out = capsys.readouterr().out
    assert seat.fingerprint.hex() in out
    assert "DNS:arbiter, DNS:localhost, IP:127.0.0.1" in out


def test_no_command_prints_a_key(pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["issue", str(pki), "seat", "--profile", "participant"])
    for command in (
        ["show", str(pki / "seat")],
        ["show", str(pki / "seat" / "key.pem")],
        ["verify", str(pki / "seat")],
        ["verify", str(pki / "seat" / "key.pem"), "--json"],
        ["verify", str(pki / "seat"), "--ca", str(pki / "ca" / "root" / "key.pem")],
        ["issue", str(pki), "seat", "--profile", "participant"],
    ):
        main(command)
    said = "".join(capsys.readouterr())
    assert "PRIVATE" not in said
    for key in (pki / "seat" / "key.pem", pki / "ca" / "root" / "key.pem"):
        assert not any(line in said for line in key.read_text().splitlines())


def test_verify_is_0_when_good_and_1_when_not(
    pki: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["issue", str(pki), "seat", "--profile", "participant"])
    capsys.readouterr()
    assert main(["verify", str(pki / "seat")]) == 0
    assert capsys.readouterr().out.endswith("\ngood\n")
    main(["init", str(tmp_path / "other")])
    capsys.readouterr()
    assert (
        main(["verify", str(pki / "seat"), "--ca", str(tmp_path / "other" / "ca" / "root" / "cert.pem")]) == 1
    )
    out = capsys.readouterr().out
    assert "FAILED chain" in out
    assert out.endswith("not good: 1 of 11 steps failed\n")


def test_verify_writes_one_json_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    issue_odd(forge_root(), usages=None).write(tmp_path / "seat")
    assert main(["verify", str(tmp_path / "seat"), "--json"]) == 1
    report = orjson.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert [step["step"] for step in report["steps"] if not step["ok"]] == ["extended key usage"]


def test_show_writes_text_or_json(pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pki / "ca" / "root")]) == 0
    assert capsys.readouterr().out.startswith(f"certificate  {pki / 'ca' / 'root' / 'cert.pem'}\n")
    assert main(["show", str(pki / "ca" / "root"), "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["kind"] == "authority"


def test_replace_renews_a_holder(pki: Path) -> None:
    command = ["issue", str(pki), "seat", "--profile", "participant"]
    assert main(command) == 0
    first = Credentials.load(pki / "seat").fingerprint()
    assert main(command) == 2
    assert Credentials.load(pki / "seat").fingerprint() == first
    assert main([*command, "--replace"]) == 0
    assert Credentials.load(pki / "seat").fingerprint() != first


def test_a_refusal_is_2_with_one_sentence_and_the_way_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["issue", str(tmp_path), "seat", "--profile", "participant"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"consilium pki: there is no authority in {tmp_path}\n  consilium pki init {tmp_path}\n"
    )


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["nothing"],
        ["init"],
        ["issue", "certs", "seat"],
        ["issue", "certs", "seat", "--prof", "participant"],
        ["init", "certs", "--days", "many"],
        ["verify"],
    ],
)
def test_a_mistake_on_the_command_line_is_2(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    assert "usage: consilium pki" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], *([name] for name in NAMES)])
def test_help_shows_examples_that_parse(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*command, "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    lines = [line.split("(")[0].split() for line in out.splitlines() if line.startswith("  consilium pki ")]
    assert lines
    for line in lines:
        assert parser().parse_args(line[2:]).command == line[2]


def test_help_loads_no_cryptography() -> None:
    code = (
        "import sys\n"
        "from pki.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "sys.exit('cryptography' in sys.modules or 'OpenSSL' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_room_imports_no_other_room() -> None:
    code = (
        "import sys\n"
        "import pki.main, pki.commands\n"
        "sys.exit(any(name.split('.')[0] in {'arbiter', 'wrapper', 'council'} for name in sys.modules))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
