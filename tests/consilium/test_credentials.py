"""The folder of one holder: what must be in it, and who may read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from certificates import forge_root, issue_odd

from consilium.credentials import Credentials
from consilium.errors import UserError
from consilium.identity import fingerprint

if TYPE_CHECKING:
    from pathlib import Path

FORGED = issue_odd(forge_root())
OTHER = issue_odd(forge_root())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "seat"
    FORGED.write(place)
    return place


def test_a_whole_folder_is_found(folder: Path) -> None:
    found = Credentials.load(folder)
    assert found == Credentials(cert=folder / "cert.pem", key=folder / "key.pem", ca=folder / "ca.pem")


@pytest.mark.parametrize("name", ["cert.pem", "key.pem", "ca.pem"])
def test_a_missing_file_is_named_and_the_way_out_told(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UserError) as refusal:
        Credentials.load(folder)
    assert refusal.value.message == f"{folder / name} is missing"
    assert refusal.value.hint == f"consilium pki issue {folder.parent} seat --profile participant"


def test_a_missing_folder_is_told_as_its_first_file(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere/cert\.pem is missing"):
        Credentials.load(tmp_path / "nowhere")


def test_a_folder_in_the_place_of_a_file_is_as_good_as_missing(folder: Path) -> None:
    (folder / "ca.pem").unlink()
    (folder / "ca.pem").mkdir()
    with pytest.raises(UserError, match=r"ca\.pem is missing"):
        Credentials.load(folder)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o666])
def test_a_key_that_others_can_reach_is_refused(folder: Path, mode: int) -> None:
    (folder / "key.pem").chmod(mode)
    with pytest.raises(UserError, match=rf"open to other users \(mode {mode:04o}\)") as refusal:
        Credentials.load(folder)
    assert refusal.value.hint == f"chmod 600 {folder / 'key.pem'}"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_key_that_is_its_owners_only_is_accepted(folder: Path, mode: int) -> None:
    (folder / "key.pem").chmod(mode)
    assert Credentials.load(folder).key == folder / "key.pem"


def test_a_link_is_judged_by_what_it_points_to(folder: Path, tmp_path: Path) -> None:
    target = (folder / "key.pem").rename(tmp_path / "mounted.pem")
    (folder / "key.pem").symlink_to(target)
    assert Credentials.load(folder).key == folder / "key.pem"
    target.chmod(0o644)
    with pytest.raises(UserError, match="open to other users"):
        Credentials.load(folder)


def test_a_link_to_nothing_is_a_missing_file(folder: Path, tmp_path: Path) -> None:
    (folder / "ca.pem").unlink()
    (folder / "ca.pem").symlink_to(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"ca\.pem is missing"):
        Credentials.load(folder)


def test_a_file_that_may_not_be_read_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The tests may run as root, whom no mode stops; the refusal is made here instead.
    def refuse(*args: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    with pytest.raises(UserError, match=r"cert\.pem cannot be read: Permission denied"):
        Credentials.load(folder)


def test_the_fingerprint_is_of_the_leaf_and_not_of_what_follows(tmp_path: Path) -> None:
    found = FORGED.write(tmp_path / "chain", intermediates=OTHER.pem)
    assert found.leaf() == FORGED.der
    assert found.fingerprint() == fingerprint(FORGED.der)


def test_commentary_around_the_certificate_is_passed_over(folder: Path) -> None:
    comment = "subject=J\u00f6rg\nissuer=\u00fcber alles\n".encode("latin-1")
    (folder / "cert.pem").write_bytes(comment + FORGED.pem.replace(b"\n", b"\r\n"))
    assert Credentials.load(folder).leaf() == FORGED.der


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing of the kind",
        FORGED.key_pem,
        FORGED.pem[:200],
        b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
        b"-----BEGIN CERTIFICATE-----\nA\n-----END CERTIFICATE-----\n",
    ],
    ids=["empty", "prose", "a key", "cut", "hollow", "bad base64"],
)
def test_a_file_without_a_certificate_is_refused_and_not_quoted(folder: Path, content: bytes) -> None:
    (folder / "cert.pem").write_bytes(content)
    with pytest.raises(UserError) as refusal:
        Credentials.load(folder).fingerprint()
    assert refusal.value.message == f"{folder / 'cert.pem'} holds no certificate in PEM form"


def test_a_certificate_that_went_away_is_named(folder: Path) -> None:
    found = Credentials.load(folder)
    found.cert.unlink()
    with pytest.raises(UserError, match="cannot be read: No such file"):
        found.leaf()


def test_the_way_out_is_whole_even_for_a_relative_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as refusal:
        Credentials.load(type(tmp_path)())
    assert refusal.value.hint.startswith(f"consilium pki issue {tmp_path.parent} {tmp_path.name} ")
