"""Certificates for a council's containers: made, kept, renewed, and never given back to who lost one."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from playbook import council

from consilium import cli
from consilium.credentials import Credentials
from consilium.errors import UserError
from council import provision
from council.provision import ARBITER_USER, OPERATOR_USER, WRAPPER_USER, holders, provide
from pki.authority import Authority

DAY = 86400
HOSTS = ["arbiter", "localhost"]

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


class Clock:
    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


def made(folder: Path) -> tuple[Authority, Clock]:
    clock = Clock()
    return Authority.create(folder / "certs", clock=clock), clock


def provided(authority: Authority) -> dict[str, str]:
    """What was done, by holder."""
    lines = provide(authority, holders(council(["ada"])), HOSTS)
    return dict(line.split(",")[0].split(": ") for line in lines)


def test_everybody_is_issued_once_and_kept(tmp_path: Path) -> None:
    authority, clock = made(tmp_path)
    everybody = ["arbiter", "moderator", "operator", "ada"]
    assert provided(authority) == dict.fromkeys(everybody, "issued")
    prints = [Credentials.load(authority.folder / name).fingerprint() for name in everybody]
    clock.now += DAY
    assert provided(authority) == dict.fromkeys(everybody, "kept")
    assert [Credentials.load(authority.folder / name).fingerprint() for name in everybody] == prints


def test_what_ends_soon_is_renewed_with_the_revocation_lists(tmp_path: Path) -> None:
    authority, clock = made(tmp_path)
    provided(authority)
    clock.now += 21 * DAY
    done = provided(authority)
    assert set(done.values()) == {"renewed", "number 2"}
    assert set(provided(authority).values()) == {"kept"}


def test_a_folder_of_a_checkout_that_others_may_write_to_is_closed_to_them_before_the_first_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = tmp_path / "certs", tmp_path / "council.yaml"
    file.write_text("topic: T\nparticipants: [{name: ada, preset: llm}]\ncaps: {max_rounds: 1}\n")
    folder.mkdir()
    folder.chmod(0o775)
    (folder / "README.md").touch()
    assert cli.main(["provision", str(folder), "--council", str(file)]) == 0
    assert "is no longer open for others" in capsys.readouterr().out
    assert folder.stat().st_mode & 0o777 == 0o755
    folder.chmod(0o775)  # and with keys in it, a person has to look
    assert cli.main(["provision", str(folder), "--council", str(file)]) == 2
    assert f"chmod go-w {folder}" in capsys.readouterr().err


def test_who_was_revoked_stays_so(tmp_path: Path) -> None:
    authority, clock = made(tmp_path)
    provided(authority)
    authority.revoke("ada")
    clock.now += 25 * DAY
    assert provided(authority)["ada"] == "revoked"
    shutil.rmtree(authority.folder / "ada")
    assert provided(authority)["ada"] == "revoked", "an empty place at the table is not an invitation"


def test_who_was_revoked_gets_nothing_for_having_lost_its_folder(tmp_path: Path) -> None:
    authority, _ = made(tmp_path)
    provided(authority)
    authority.revoke("ada")
    shutil.rmtree(authority.folder / "ada")
    assert provided(authority)["ada"] == "revoked"
    (authority.folder / "ada").mkdir()  # as an engine does for a container's volume
    assert provided(authority)["ada"] == "revoked"
    assert list((authority.folder / "ada").iterdir()) == []


def test_an_arbiter_with_another_name_gets_another_certificate(tmp_path: Path) -> None:
    authority, _ = made(tmp_path)
    provided(authority)
    everybody = holders(council(["ada"]))
    told = [line.split(",")[0] for line in provide(authority, everybody, [*HOSTS, "council.example.org"])]
    assert told == ["arbiter: issued", "moderator: kept", "operator: kept", "ada: kept"]
    last = authority.index.latest("arbiter")
    assert last is not None
    assert last.dns == ("arbiter", "localhost", "council.example.org")


def test_a_folder_that_an_engine_has_made_is_filled(tmp_path: Path) -> None:
    authority, _ = made(tmp_path)
    (authority.folder / "ada").mkdir(mode=0o755)
    assert provided(authority)["ada"] == "issued"
    assert (authority.folder / "ada").stat().st_mode & 0o777 == 0o700
    Credentials.load(authority.folder / "ada")


@AS_ROOT
def test_each_folder_belongs_to_its_container_s_user(tmp_path: Path) -> None:
    authority, clock = made(tmp_path)
    provided(authority)
    clock.now += 21 * DAY
    provided(authority)
    for name, user in (("arbiter", ARBITER_USER), ("operator", OPERATOR_USER), ("ada", WRAPPER_USER)):
        folder = authority.folder / name
        assert {path.stat().st_uid for path in (folder, *folder.iterdir())} == {user}
        assert (folder / "key.pem").stat().st_mode & 0o777 == 0o600
    assert (authority.folder / "ca").stat().st_uid == 0


def test_what_cannot_be_given_away_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ada").mkdir()

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", refused)
    with pytest.raises(UserError, match="cannot be given to user 10001"):
        provision._give(tmp_path / "ada", WRAPPER_USER)


@pytest.mark.parametrize("name", ["ca", "arbiter", "moderator", "operator"])
def test_a_seat_with_a_name_of_ours_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"cannot be called {name} here"):
        holders(council([name]))


def test_the_command_makes_the_authority_and_says_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "council.yaml"
    file.write_text("topic: x\nparticipants:\n  - name: ada\ncaps: {max_rounds: 1}\n")
    words = ["provision", str(tmp_path / "certs"), "--council", str(file)]
    assert cli.main(words) == 0
    first, *issued = capsys.readouterr().out.splitlines()
    assert first == "ca: a new authority for council.local"
    assert [line.split(",")[0] for line in issued] == [
        "arbiter: issued",
        "moderator: issued",
        "operator: issued",
        "ada: issued",
    ]
    assert cli.main(words) == 0
    assert all(": kept, good until 20" in line for line in capsys.readouterr().out.splitlines())
    assert provision.parser().prog == "consilium provision"


# --- the council in force ----------------------------------------------------------------------------


def test_the_council_is_published_whole_for_everybody_with_room_for_roles(tmp_path: Path) -> None:
    council, place = tmp_path / "council.yaml", tmp_path / "published"
    council.write_bytes(b"topic: one\n")
    provision.publish(council, place)
    assert (place / "council.yaml").read_bytes() == b"topic: one\n"
    assert stat.S_IMODE((place / "council.yaml").stat().st_mode) == 0o644
    assert stat.S_IMODE((place / "roles").stat().st_mode) == 0o755
    council.write_bytes(b"topic: two\n")
    provision.publish(council, place)
    assert (place / "council.yaml").read_bytes() == b"topic: two\n"
    assert sorted(path.name for path in place.iterdir()) == ["council.yaml", "roles"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    council = tmp_path / "council.yaml"
    council.write_bytes(b"topic: one\n")
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="file: the council file cannot be put there"):
        provision.publish(council, tmp_path / "file")
