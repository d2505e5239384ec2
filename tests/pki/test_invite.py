"""``invite``: one file and one line for a guest, and nothing issued that the Arbiter would not admit."""

from __future__ import annotations

import pathlib
import re
import shlex
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import orjson
import pexpect
import pytest
from certificates import DAY, clock
from handshakes import Pair

from consilium import passphrase
from consilium.bundle import open_bundle
from consilium.certificate import identify
from consilium.credentials import Credentials
from consilium.errors import UserError
from pki.authority import Authority
from pki.invite import Asked, Invitation, invite, made_up
from pki.main import main
from pki.profiles import check_name_at_table, issuer_for, read_profile

if TYPE_CHECKING:
    from pathlib import Path

KEY = b"correct horse battery"
PROFILES = """\
participant:
  role: participant
  names: [ada, "seat_*"]
operator:
  role: operator
observer:
  role: operator
visitor:
  role: participant
  names: [guest_claude]
  max_lifetime_days: 7
  issuer: Consilium participants (council.local)
strange:
  role: participant
  names: [guest_claude]
  issuer: Consilium operators (council.local)
nobody:
  role: participant
broken:
  role: spectator
doors:
  handshakes: 10
"""


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(passphrase.VARIABLE, raising=False)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority.create(tmp_path / "certs")
    made.issue("hub", profile="arbiter", dns=["localhost", "arbiter", "council.example"], ips=["127.0.0.1"])
    return made


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    path = tmp_path / "profiles.yaml"
    path.write_text(PROFILES)
    return path


def asked(tmp_path: Path, **other: Any) -> Asked:
    usual = {"holder": "guest", "profile": "participant", "name": "guest_claude", "days": 7}
    return Asked(**{**usual, "out": tmp_path / "guest.p12", **other})


def invited(authority: Authority, tmp_path: Path, **other: Any) -> Invitation:
    return invite(authority, asked(tmp_path, **other), lambda: KEY)


def test_the_guest_gets_in_with_the_file_alone(authority: Authority, tmp_path: Path) -> None:
    made = invited(authority, tmp_path)
    assert stat.S_IMODE(made.bundle.stat().st_mode) == 0o600
    with open_bundle(made.bundle, lambda: KEY) as credentials:
        found = identify(credentials.leaf())
        assert (found.profile, found.subject, found.lifetime_days) == ("participant", "guest", 7)
        assert credentials.cert.read_bytes().count(b"BEGIN CERTIFICATE") == 2
        Pair(Credentials.load(authority.folder / "hub"), credentials).shake()
    with pytest.raises(UserError), open_bundle(made.bundle, lambda: b"wrong"):
        pass


def test_the_line_is_what_is_typed_on_the_other_machine(authority: Authority, tmp_path: Path) -> None:
    made = invited(authority, tmp_path, role="sceptic")
    assert made.line == (
        "consilium join council.example --bundle guest.p12 --name guest_claude --preset claude --role sceptic"
    )
    plain = invited(authority, tmp_path, holder="guest_claude", out=tmp_path / "my guest.p12", preset="llm")
    line = "consilium join council.example --bundle 'my guest.p12' --name guest_claude --preset llm"
    assert plain.line == line
    assert shlex.split(plain.line)[4] == "my guest.p12"
    assert plain.notes[-1] == "another client or role is the guest's to choose: --preset and --role"


HOSTS: list[tuple[list[str], list[str], str | None]] = [
    (["localhost", "council.example"], [], "council.example"),
    (["localhost", "arbiter"], ["127.0.0.1", "192.0.2.7"], "192.0.2.7"),
    (["localhost"], ["::1", "2001:db8::7"], "2001:db8::7"),
    (["localhost", "arbiter"], ["127.0.0.1", "127.0.0.2", "::1"], None),
]


@pytest.mark.parametrize(("dns", "ips", "host"), HOSTS)
def test_the_host_is_one_that_a_guest_elsewhere_can_reach(
    tmp_path: Path, dns: list[str], ips: list[str], host: str | None
) -> None:
    authority = Authority.create(tmp_path / "certs")
    authority.issue("hub", profile="arbiter", dns=dns, ips=ips)
    if host is None:
        with pytest.raises(UserError, match="no Arbiter's certificate names a host") as refusal:
            invited(authority, tmp_path)
        names = "--dns localhost --dns arbiter --ip 127.0.0.1 --ip 127.0.0.2 --ip ::1 --dns council.example"
        assert refusal.value.hint.endswith(
            f"issue {authority.folder} hub --profile arbiter {names} --replace"
        )
        assert not (authority.folder / "guest").exists()
    else:
        assert invited(authority, tmp_path).line.split()[2] == host


def test_an_authority_without_an_arbiter_says_how_to_get_one(tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "certs")
    with pytest.raises(UserError) as refusal:
        invited(authority, tmp_path)
    assert refusal.value.hint.endswith(
        f"issue {authority.folder} arbiter --profile arbiter --dns council.example"
    )


@pytest.mark.parametrize("gone", ["revoked", "expired"])
def test_an_arbiter_that_is_no_more_names_no_host(authority: Authority, tmp_path: Path, gone: str) -> None:
    if gone == "revoked":
        authority.revoke("hub")
    late = Authority.open(authority.folder, clock=lambda: clock() + 60 * DAY * (gone == "expired"))
    with pytest.raises(UserError, match="no Arbiter's certificate names a host"):
        invited(late, tmp_path)


@pytest.mark.parametrize(("host", "option"), [("elsewhere.example", "--dns"), ("192.0.2.9", "--ip")])
def test_a_host_that_the_arbiter_cannot_prove_to_be_is_said(
    authority: Authority, tmp_path: Path, host: str, option: str
) -> None:
    made = invited(authority, tmp_path, host=host)
    assert made.line.split()[2] == host
    (note,) = [note for note in made.notes if "no Arbiter's certificate here names" in note]
    assert f"--dns council.example --ip 127.0.0.1 {option} {host} --replace" in note
    command = shlex.split(note.partition(": ")[2])[2:]
    assert main(command) == 0
    again = invited(authority, tmp_path, holder="guest_claude", out=tmp_path / "second.p12", host=host)
    assert not [note for note in again.notes if "certificate here names" in note]


def test_whose_word_the_name_rests_on_is_said(authority: Authority, tmp_path: Path, profiles: Path) -> None:
    built_in = invited(authority, tmp_path).notes
    assert "that is built in; if the Arbiter was started with --profiles FILE, that file must" in built_in[0]
    assert built_in[1] == "a council with a static roster must name guest_claude in it, too"
    own = invited(
        authority, tmp_path, holder="v", profile="visitor", profiles=profiles, out=tmp_path / "v.p12"
    )
    assert own.notes[0] == f"guest_claude is allowed by the profile visitor in {profiles}"
    record = authority.index.latest("v")
    assert record is not None
    assert (record.profile, record.issuer) == ("visitor", "participants")
    assert record.uri == "spiffe://council.local/visitor/v"


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "name at the table": ({"name": "Guest"}, "cannot be a name at the table"),
    "empty name": ({"name": ""}, "cannot be a name at the table"),
    "path as a name": ({"name": "../x"}, "cannot be a name at the table"),
    "holder": ({"holder": "../x"}, "cannot be the name of a holder"),
    "the authority's folder": ({"holder": "ca"}, "cannot be the name of a holder"),
    "somebody's folder": ({"holder": "hub"}, "is there already, and no key is overwritten"),
    "no folder to write to": (
        {"out": pathlib.Path("/nowhere/guest.p12")},
        "/nowhere is no folder to write guest",
    ),
    "days": ({"days": 91}, "accepts certificates of at most 90 days"),
    "operator": ({"profile": "operator"}, "is an operator's, who has no name at the table"),
    "arbiter": ({"profile": "arbiter"}, "no profile is called 'arbiter'"),
    "no such profile": ({"profile": "visitor"}, "no profile is called 'visitor'"),
    "name not in the file": ({"profiles": True}, "does not allow the name 'guest_claude', and nothing was"),
    "profile not in the file": ({"profiles": True, "profile": "x"}, "has no profile 'x', so its Arbiter"),
    "life over the file's": ({"profiles": True, "profile": "visitor", "days": 8}, "of at most 7 days"),
    "role in the file": ({"profiles": True, "profile": "observer"}, "is an operator's"),
    "no names in the file": ({"profiles": True, "profile": "nobody"}, "does not allow the name"),
    "another issuer in the file": (
        {"profiles": True, "profile": "strange"},
        "wants the signature of Consilium operators (council.local), and here Consilium participants",
    ),
    "broken in the file": (
        {"profiles": True, "profile": "broken"},
        "the profile broken cannot be used: role",
    ),
    "no profile": ({"profiles": True, "profile": "doors"}, "the profile doors cannot be used"),
}


@pytest.mark.parametrize(("odd", "why"), REFUSED.values(), ids=REFUSED)
def test_what_would_not_be_admitted_is_refused_before_anything_is_issued(
    authority: Authority, tmp_path: Path, profiles: Path, odd: dict[str, Any], why: str
) -> None:
    index = authority.index
    if "profiles" in odd:
        odd = odd | {"profiles": profiles}
    with pytest.raises(UserError, match=re.escape(why)):
        invite(authority, asked(tmp_path, **odd), lambda: pytest.fail("a passphrase was asked for"))
    assert authority.index == index
    assert sorted(path.name for path in tmp_path.iterdir()) == ["certs", "profiles.yaml"]
    assert sorted(path.name for path in authority.folder.iterdir()) == ["ca", "hub"]


def test_a_name_that_is_not_allowed_comes_with_what_to_write(profiles: Path) -> None:
    with pytest.raises(UserError) as refusal:
        check_name_at_table("guest_claude", "guest", "participant", profiles)
    hint = refusal.value.hint
    assert hint.startswith("its names are ada, seat_*. Add guest_claude to `names` of participant there")
    section = "".join(f"{line[4:]}\n" for line in hint.splitlines() if line.startswith("    "))
    profiles.write_text(PROFILES + section)
    check_name_at_table("guest_claude", "guest", "guest_claude", profiles)
    assert read_profile("guest_claude", profiles).names == ("guest_claude",)


@pytest.mark.parametrize("content", ["", "[]", "text"])
def test_a_file_that_holds_no_profiles_has_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "p.yaml").write_text(content)
    with pytest.raises(UserError):
        read_profile("participant", tmp_path / "p.yaml")


ISSUERS = [("participant", "participants"), ("operator", "operators"), ("arbiter", "servers")]


@pytest.mark.parametrize(
    ("segment", "issuer"), [*ISSUERS, ("visitor", "participants"), ("observer", "operators")]
)
def test_the_role_of_a_profile_says_who_signs(profiles: Path, segment: str, issuer: str) -> None:
    assert issuer_for(segment, profiles, days=7, trust_domain="council.local") == issuer


def test_a_bundle_that_is_there_is_not_overwritten(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "guest.p12").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=r"guest\.p12 is there already") as refusal:
        invited(authority, tmp_path)
    assert "--out FILE" in refusal.value.hint
    assert not (authority.folder / "guest").exists()


def test_a_guest_can_be_invited_again(authority: Authority, tmp_path: Path) -> None:
    first = invited(authority, tmp_path).bundle.read_bytes()
    (tmp_path / "guest.p12").unlink()
    assert invited(authority, tmp_path, replace=True).bundle.read_bytes() != first


# --- as a command ---------------------------------------------------------------------------------------


def command(authority: Authority, *more: str) -> list[str]:
    return [
        "invite",
        str(authority.folder),
        "guest",
        "--profile",
        "participant",
        "--name",
        "guest_claude",
        *more,
    ]


def test_with_a_passphrase_of_ones_own(
    authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_bytes(KEY + b"\n")
    assert main(command(authority, "--passphrase-file", "secret")) == 0
    out = capsys.readouterr().out
    assert "bundle       guest.p12 (mode 0600, protected by the passphrase)\n" in out
    assert out.endswith(
        "on the other machine, beside guest.p12:\n"
        "  consilium join council.example --bundle guest.p12 --name guest_claude --preset claude\n"
    )
    assert KEY.decode() not in out
    with open_bundle(tmp_path / "guest.p12", lambda: KEY):
        pass


def test_for_a_program(
    authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(passphrase.VARIABLE, KEY.decode())
    out = tmp_path / "g.p12"
    assert main(command(authority, "--out", str(out), "--json", "--role", "sceptic")) == 0
    said = capsys.readouterr().out
    told = orjson.loads(said)
    assert told["bundle"] == str(out)
    assert told["run"].endswith("--bundle g.p12 --name guest_claude --preset claude --role sceptic")
    assert told["certificate"]["kind"] == "participant"
    assert len(told["notes"]) == 3
    assert KEY.decode() not in said
    with open_bundle(out, lambda: KEY):
        pass


@pytest.mark.parametrize("where", ["file", "environment"])
def test_an_empty_passphrase_is_none(
    authority: Authority,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
) -> None:
    (tmp_path / "secret").write_bytes(b"\n")
    monkeypatch.chdir(tmp_path)
    if where == "environment":
        monkeypatch.setenv(passphrase.VARIABLE, "")
    assert main(command(authority, *(["--passphrase-file", "secret"] if where == "file" else []))) == 2
    assert "an empty passphrase protects nothing" in capsys.readouterr().err
    assert not (authority.folder / "guest").exists()


def test_a_made_up_passphrase_is_shown_at_the_terminal_and_nowhere_else(
    authority: Authority, tmp_path: Path
) -> None:
    words = " ".join(
        shlex.quote(word) for word in [sys.executable, "-m", "consilium", "pki", *command(authority)]
    )
    child = pexpect.spawn("/bin/sh", ["-c", f"{words} > out.txt"], cwd=tmp_path, encoding="utf-8", timeout=60)
    child.expect(r"passphrase   ([a-z0-9-]+) \(shown once; send it another way than the file\)")
    shown = child.match.group(1)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert shown not in (tmp_path / "out.txt").read_text()
    assert "consilium join" in (tmp_path / "out.txt").read_text()
    with open_bundle(tmp_path / "guest.p12", shown.encode) as credentials:
        assert identify(credentials.leaf()).subject == "guest"


def test_without_a_terminal_nothing_is_made_up_and_nothing_issued(
    authority: Authority, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "consilium", "pki", *command(authority)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no terminal to show the passphrase at" in done.stderr
    assert "--passphrase-file" in done.stderr
    assert not (authority.folder / "guest").exists()
    assert not (tmp_path / "guest.p12").exists()


def test_what_is_made_up_is_long_readable_and_never_the_same() -> None:
    made = {made_up() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(rb"([a-km-np-z2-9]{5}-){4}[a-km-np-z2-9]{5}", each) for each in made)
