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


@pytest.fixture
def issued(pki: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    hub = ["--profile", "arbiter", "--dns", "localhost"]
    assert main(["issue", str(pki), "hub", *hub]) == 0
    assert main(["issue", str(pki), "seat", "--profile", "participant"]) == 0
    capsys.readouterr()
    return pki


def test_revoke_says_what_is_revoked_where_the_lists_are_and_what_comes_next(
    issued: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suffix = Credentials.load(issued / "seat").fingerprint().hex()[:8].upper()
    assert main(["revoke", str(issued), suffix, "--reason", "key-compromise"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"revoked      seat_{suffix}, serial ")
    assert lines[0].endswith(" UTC (key-compromise)")
    assert lines[1:4] == [
        "lists        number 2, good for another 29 days",
        f"written      {issued / 'ca' / 'crl.pem'}",
        f"written      {issued / 'hub' / 'crl.pem'}",
    ]
    assert lines[4].startswith("next: nothing, where an Arbiter runs with these files")
    assert f"copy {issued / 'ca' / 'crl.pem'} there, as crl.pem" in lines[5]
    assert main(["revoke", str(issued), "seat", "--reason", "superseded", "--json"]) == 0
    told = orjson.loads(capsys.readouterr().out)
    assert (told["revoked"], [record["reason"] for record in told["before"]]) == ([], ["key-compromise"])
    assert told["lists"]["number"] == 3
    assert main(["verify", str(issued / "seat")]) == 1
    assert "FAILED revocation          seat was revoked" in capsys.readouterr().out


def test_a_list_that_does_not_reach_an_arbiter_is_1(issued: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (issued / "hub").rename(issued.parent / "elsewhere")
    (issued / "hub").symlink_to(issued.parent / "elsewhere")
    assert main(["crl", str(issued)]) == 1
    assert f"FAILED       {issued / 'hub' / 'crl.pem'}: " in capsys.readouterr().out
    assert main(["revoke", str(issued), "seat", "--json"]) == 1
    assert list(orjson.loads(capsys.readouterr().out)["failed"]) == [str(issued / "hub" / "crl.pem")]


def test_crl_makes_lists_that_are_good_for_as_long_as_asked(
    issued: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["crl", str(issued), "--days", "7"]) == 0
    assert capsys.readouterr().out.startswith("lists        number 2, good for another 6 days\n")
    assert main(["crl", str(issued), "--json"]) == 0
    told = orjson.loads(capsys.readouterr().out)
    assert (told["lists"]["number"], told["lists"]["days"]) == (3, 7)
    assert main(["crl", str(issued), "--days", "91"]) == 2
    assert "from 1 to 90 days" in capsys.readouterr().err


def test_list_in_text_and_json(issued: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", str(issued)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["NAME", "hub", "seat", "revocation"]
    assert main(["list", str(issued), "--json"]) == 0
    told = orjson.loads(capsys.readouterr().out)
    assert told["trust_domain"] == "council.local"
    assert [record["name"] for record in told["certificates"]] == ["hub", "seat"]
    assert told["certificates"][1]["fingerprint"] == Credentials.load(issued / "seat").fingerprint().hex()


def test_renew_one_or_all(issued: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["renew", str(issued), "--all", "--if-within", "10"]) == 0
    assert (
        capsys.readouterr().out == "kept         hub: ends in 29 days\nkept         seat: ends in 29 days\n"
    )
    before = Credentials.load(issued / "seat").fingerprint()
    assert main(["renew", str(issued), "seat", "--revoke"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("renewed      seat_")
    assert "lists        number 2" in out
    assert Credentials.load(issued / "seat").fingerprint() != before
    assert main(["renew", str(issued), "--all", "--json"]) == 0
    told = orjson.loads(capsys.readouterr().out)
    assert [record["name"] for record in told["renewed"]] == ["hub", "seat"]
    (issued / "ca" / "participants" / "key.pem").chmod(0o644)
    assert main(["renew", str(issued), "--all"]) == 1
    assert "FAILED       seat: " in capsys.readouterr().out


@pytest.mark.parametrize("argv", [["renew", "certs"], ["renew", "certs", "seat", "--all"]])
def test_renew_is_told_whom(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2


def test_a_profile_that_is_none_is_refused_with_those_that_are(
    pki: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["issue", str(pki), "x", "--profile", "moderator"]) == 2
    assert "built in are participant, operator, arbiter; name the Arbiter's own" in capsys.readouterr().err
    assert not (pki / "x").exists()


def test_init_and_issue_for_a_program(pki: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", str(pki.parent / "other"), "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["kind"] == "authority"
    assert main(["issue", str(pki), "seat", "--profile", "participant", "--json"]) == 0
    assert orjson.loads(capsys.readouterr().out)["subject"] == "seat"


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
