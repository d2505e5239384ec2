"""``consilium pki bundle``: one holder in one file, for us and for OpenSSL, and no key anywhere else."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import orjson
import pexpect
import pytest
from certificates import forge_root, issue_odd

from consilium import passphrase
from consilium.bundle import open_bundle
from consilium.credentials import Credentials
from consilium.tls import client_context
from pki import store
from pki.main import main, parser

if TYPE_CHECKING:
    from pathlib import Path

KEY = "correct horse battery"


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("council") / "certs"
    assert main(["init", str(folder)]) == 0
    assert main(["issue", str(folder), "anna", "--profile", "operator"]) == 0
    return folder


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(KEY + "\n")
    return path


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(passphrase.VARIABLE, raising=False)


def typed(monkeypatch: pytest.MonkeyPatch, *answers: str) -> list[str]:
    """Let a person answer; return what was asked."""
    left = list(answers)
    asked: list[str] = []

    def ask(prompt: str) -> bytes:
        asked.append(prompt)
        return left.pop(0).encode()

    monkeypatch.setattr(passphrase, "ask", ask)
    return asked


@pytest.mark.parametrize("form", ["p12", "pem"])
@pytest.mark.parametrize("guarded", [True, False])
def test_a_bundle_is_what_its_holder_has(
    issued: Path, tmp_path: Path, secret: Path, form: str, *, guarded: bool
) -> None:
    out = tmp_path / "anna"
    how = ["--passphrase-file", str(secret)] if guarded else ["--no-passphrase"]
    assert main(["bundle", str(issued), "anna", "--out", str(out), "--format", form, *how]) == 0
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    own = Credentials.load(issued / "anna")
    with open_bundle(out, KEY.encode if guarded else None) as found:
        client_context(found)
        assert found.fingerprint() == own.fingerprint()
        assert found.cert.read_bytes() == own.cert.read_bytes()
        assert found.cert.read_bytes().count(b"BEGIN CERTIFICATE") == 2
        assert found.ca.read_bytes() == own.ca.read_bytes()
        assert found.key.read_bytes() == own.key.read_bytes()
    key = own.key.read_bytes().splitlines()[1]
    assert (key in out.read_bytes()) == (form == "pem" and not guarded)


def test_the_default_is_pkcs12_and_it_is_said_how_it_is_guarded(
    issued: Path, tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["bundle", str(issued), "anna", "--out"]
    main([*command, str(tmp_path / "a"), "--passphrase-file", str(secret)])
    told = capsys.readouterr().out
    assert "names        spiffe://council.local/operator/anna\n" in told
    assert told.endswith(f"bundle       {tmp_path / 'a'} (mode 0600, protected by the passphrase)\n")
    assert (tmp_path / "a").read_bytes()[:1] == b"\x30"
    main([*command, str(tmp_path / "b"), "--no-passphrase"])
    assert capsys.readouterr().out.endswith("(mode 0600, NOT protected by a passphrase)\n")


def test_a_program_is_told_the_same_in_one_object(
    issued: Path, secret: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for out, how, protected in (
        (tmp_path / "a", ["--passphrase-file", str(secret)], True),
        (tmp_path / "b", ["--no-passphrase"], False),
    ):
        assert main(["bundle", str(issued), "anna", "--out", str(out), "--json", *how]) == 0
        told = orjson.loads(capsys.readouterr().out)
        assert (told["bundle"], told["protected"]) == (str(out), protected)
        assert told["certificate"]["subject"] == "anna"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_openssl_reads_it_and_finds_modern_encryption_and_every_certificate(
    issued: Path, tmp_path: Path, secret: Path
) -> None:
    out = tmp_path / "anna.p12"
    main(["bundle", str(issued), "anna", "--out", str(out), "--passphrase-file", str(secret)])
    told = subprocess.run(
        ["openssl", "pkcs12", "-info", "-in", out, "-passin", f"file:{secret}", "-noenc"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "PBES2, PBKDF2, AES-256-CBC" in told.stderr
    assert "MAC: sha256" in told.stderr
    assert told.stdout.count("BEGIN CERTIFICATE") == 3
    assert told.stdout.count("BEGIN PRIVATE KEY") == 1
    assert "friendlyName: anna" in told.stdout


@pytest.mark.parametrize("form", ["p12", "pem"])
def test_the_chain_comes_along(tmp_path: Path, form: str) -> None:
    root = forge_root()
    between = issue_odd(root, cn="between")  # any certificate: nothing here judges a chain
    issue_odd(root).write(tmp_path / "seat", intermediates=between.pem)
    out = tmp_path / "bundle"
    assert (
        main(["bundle", str(tmp_path), "seat", "--out", str(out), "--format", form, "--no-passphrase"]) == 0
    )
    count = subprocess.run(
        ["openssl", "pkcs12", "-in", out, "-passin", "pass:", "-nokeys"] if form == "p12" else ["cat", out],
        capture_output=True,
        check=True,
    ).stdout.count(b"BEGIN CERTIFICATE")
    assert count == 3


def test_the_environment_gives_the_passphrase(
    issued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(passphrase.VARIABLE, KEY)
    assert typed(monkeypatch) == []
    assert main(["bundle", str(issued), "anna", "--out", str(tmp_path / "a")]) == 0
    with open_bundle(tmp_path / "a", KEY.encode):
        pass


def test_a_person_types_it_twice(issued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = typed(monkeypatch, KEY, KEY)
    assert main(["bundle", str(issued), "anna", "--out", str(tmp_path / "a")]) == 0
    assert asked == [f"New passphrase for {tmp_path / 'a'}", "The same again"]
    with open_bundle(tmp_path / "a", KEY.encode):
        pass


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ((KEY, "other"), "the two passphrases differ\n  nothing was written"),
        (("",), "an empty passphrase protects nothing\n  --no-passphrase writes a bundle without one"),
    ],
)
def test_what_protects_nothing_is_not_written(  # noqa: PLR0917 - pytest gives them by name
    issued: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: tuple[str, ...],
    sentence: str,
) -> None:
    typed(monkeypatch, *answers)
    assert main(["bundle", str(issued), "anna", "--out", str(tmp_path / "a")]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_nothing_is_overwritten_or_followed(
    issued: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("a", "link"):
        assert main(["bundle", str(issued), "anna", "--out", str(tmp_path / name), "--no-passphrase"]) == 2
        told = f"consilium pki: {tmp_path / name} is there already, and no key is overwritten\n"
        assert capsys.readouterr().err.startswith(told)
    assert (tmp_path / "a").read_text() == "mine"
    assert not (tmp_path / "elsewhere").exists()


def test_the_authority_itself_is_never_bundled(
    issued: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bundle", str(issued), "ca", "--out", str(tmp_path / "a"), "--no-passphrase"]) == 2
    assert "is the authority itself, and its key stays where it is" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_a_holder_that_is_not_there_is_named(
    issued: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bundle", str(issued), "nobody", "--out", str(tmp_path / "a"), "--no-passphrase"]) == 2
    assert f"{issued / 'nobody' / 'cert.pem'} is missing" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_named(
    issued: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "nowhere" / "a"
    assert main(["bundle", str(issued), "anna", "--out", str(out), "--no-passphrase"]) == 2
    assert capsys.readouterr().err == f"consilium pki: {out.parent} does not exist\n"


def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seat = issue_odd(forge_root()).write(tmp_path / "seat")
    seat.key.write_bytes(issue_odd(forge_root()).key_pem)
    assert main(["bundle", str(tmp_path), "seat", "--out", str(tmp_path / "a"), "--no-passphrase"]) == 2
    assert f"{seat.key} is not the key of {seat.cert}" in capsys.readouterr().err


def test_a_disk_that_fails_half_way_keeps_no_part_of_a_key(
    issued: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert main(["bundle", str(issued), "anna", "--out", str(tmp_path / "a"), "--no-passphrase"]) == 2
    assert f"{tmp_path} cannot be used: No space left on device" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_a_private_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store.write_private(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


def test_no_form_prints_a_key_or_a_passphrase(
    issued: Path, tmp_path: Path, secret: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("p12", "pem"):
        for how in (["--passphrase-file", str(secret)], ["--no-passphrase"]):
            out = tmp_path / f"{form}{len(how)}"
            main(["bundle", str(issued), "anna", "--out", str(out), "--format", form, *how])
    said = "".join(capsys.readouterr())
    assert "PRIVATE" not in said
    assert KEY not in said
    key = (issued / "anna" / "key.pem").read_text().splitlines()
    assert not any(line in said for line in key)


def test_help_shows_examples_that_parse(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["bundle", "--help"])
    assert stop.value.code == 0
    told = capsys.readouterr().out
    lines = [line.split("(")[0].split() for line in told.splitlines() if line.startswith("  consilium pki ")]
    assert len(lines) == 3
    for line in lines:
        assert parser().parse_args(line[2:]).command == "bundle"


def test_at_a_terminal_it_asks_twice_and_shows_nothing(issued: Path, tmp_path: Path) -> None:
    command = ["-m", "consilium", "pki", "bundle", str(issued), "anna", "--out", str(tmp_path / "a")]
    child = pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=30)
    child.expect("New passphrase for .*: ")
    child.sendline(KEY)
    child.expect("The same again: ")
    child.sendline(KEY)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert KEY not in child.before
    with open_bundle(tmp_path / "a", KEY.encode):
        pass
