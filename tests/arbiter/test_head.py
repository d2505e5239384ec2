"""The head vouches for what is on disk: soon, signed, and as a whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest
import seals
import transcripts
from journals import (
    BROKEN,
    NO_SPACE,
    FaultyDisk,
    close_failed,
    content,
    inspected,
    is_head,
    is_transcript,
    start,
)

from arbiter import writer
from arbiter.head import read_own_head
from consilium.errors import TranscriptError, UserError
from consilium.headseal import HeadSigner, Verdict, check
from consilium.records import GENESIS, Head
from consilium.transcript import head_path, read_head, read_records
from pki.authority import Authority

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

ENTRIES = transcripts.debate()


def vouched(path: Path) -> int:
    head = read_head(path)
    return head.count if head else 0


def put(path: Path, text: str) -> None:
    path.write_text(text)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


async def test_the_head_is_signed_and_vouches_for_everything_when_it_is_asked_for(path: Path) -> None:
    journal = start(path)
    journal.append(ENTRIES)
    await journal.seal_head()
    head = read_head(path)
    assert head is not None
    assert (head.debate_id, head.count, head.last) == (transcripts.DEBATE, len(ENTRIES), journal.last)
    assert check(head).signature is Verdict.GOOD
    await journal.close()


async def test_the_head_follows_by_itself_at_most_once_in_its_interval(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HEAD_INTERVAL_S", 60.0)
    journal = start(path)
    for entry in ENTRIES:
        await journal.append_durably([entry])
    assert journal.stats.heads <= 1
    await journal.close()
    head = read_head(path)
    assert head is not None
    assert head.count == len(ENTRIES)


async def test_the_head_catches_up_when_no_more_records_come(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HEAD_INTERVAL_S", 0.05)
    journal = start(path)
    for entry in ENTRIES:
        await journal.append_durably([entry])
    with anyio.fail_after(10):
        while journal.stats.heads == 0 or vouched(path) < len(ENTRIES):  # noqa: ASYNC110 - another thread's work
            await anyio.sleep(0.01)
    await journal.seal_head()  # the writer counts a head after it stands there
    heads = journal.stats.heads
    await anyio.sleep(0.2)
    assert journal.stats.heads == heads  # nothing new, nothing written
    await journal.close()


async def test_a_head_never_vouches_for_a_record_that_is_not_on_disk(path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:4])
    disk.on_sync = BROKEN
    journal.append(ENTRIES[4:])
    await close_failed(journal)
    head = read_head(path)
    assert head is not None
    assert head.count == 4


@pytest.mark.parametrize("fault", [{"short": 10}, {"on_write": NO_SPACE}, {"on_sync": BROKEN}])
async def test_a_head_that_cannot_be_written_loses_no_record_and_is_told_to_who_asks(
    path: Path, fault: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk(only=is_head)
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    await journal.seal_head()
    for name, value in fault.items():
        setattr(disk, name, value)
    await journal.append_durably(ENTRIES[1:])
    for _ in range(2):
        with pytest.raises(TranscriptError, match="head could not be written"):
            await journal.seal_head()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    disk.short = disk.on_write = disk.on_sync = None
    await journal.seal_head()
    await journal.close()
    assert inspected(path).whole


async def test_closing_tells_when_the_head_could_not_be_written(path: Path) -> None:
    disk = FaultyDisk(only=is_head, on_write=NO_SPACE)
    journal = start(path, disk)
    await journal.append_durably(ENTRIES)
    with pytest.raises(TranscriptError, match="No space left"):
        await journal.close()
    assert read_head(path) is None
    assert len(read_records(path)[0]) == len(ENTRIES)


async def test_a_journal_without_records_has_no_head(path: Path) -> None:
    journal = start(path)
    await journal.seal_head()
    await journal.close()
    assert read_head(path) is None


async def test_a_draft_that_is_a_link_is_not_written_through(path: Path) -> None:
    victim, draft = path.with_name("victim"), path.with_name(f"{path.name}.head.new")
    put(victim, "mine")
    draft.symlink_to(victim)
    journal = start(path)
    await journal.append_durably(ENTRIES[:1])
    await close_failed(journal)
    assert content(victim) == b"mine"


async def test_the_head_of_a_lost_transcript_is_not_written_over(path: Path) -> None:
    proof = Head(debate_id="d", count=3, last=GENESIS)
    put(head_path(path), proof.model_dump_json())
    with pytest.raises(UserError, match="is the head of a transcript that is not there"):
        start(path)
    assert read_head(path) == proof
    assert [entry.name for entry in path.parent.iterdir()] == [head_path(path).name]


async def test_a_second_journal_at_the_same_path_is_refused(path: Path) -> None:
    journal = start(path)
    await journal.append_durably(ENTRIES)
    await journal.close()
    with pytest.raises(UserError, match="is already a file"):
        start(path)
    assert inspected(path).whole


# --- read by the next Arbiter ------------------------------------------------------------------------


def not_ours(path: Path, holder: seals.Holder | None = None) -> UserError:
    with pytest.raises(UserError) as caught:
        read_own_head(path, (holder or seals.arbiter()).signer)
    return caught.value


@pytest.fixture
def signed(path: Path) -> Path:
    """A transcript's path, with a head beside it."""
    head = seals.arbiter().signer.sign(Head(debate_id="d", count=3, last=GENESIS))
    put(head_path(path), head.model_dump_json())
    return path


def test_a_head_of_ones_own_is_read(signed: Path) -> None:
    head = read_own_head(signed, seals.arbiter().signer)
    assert head is not None
    assert head.count == 3
    assert read_own_head(signed.with_name("other.jsonl"), seals.arbiter().signer) is None


def test_a_new_certificate_of_the_same_key_goes_on(signed: Path) -> None:
    renewed = seals.renewed(seals.arbiter())
    assert renewed.certificate != seals.arbiter().certificate
    assert read_own_head(signed, renewed.signer) == read_head(signed)


def test_a_head_made_with_another_key_is_refused(signed: Path) -> None:
    error = not_ours(signed, seals.holder(seals.council(), seals.arbiter_leaf()))
    assert error.message.startswith(
        f"the head {head_path(signed)} was made with another key: it is signed by "
    )
    assert "--certs" in error.hint


def put_signed(path: Path, signer: HeadSigner) -> None:
    put(head_path(path), signer.sign(Head(debate_id="d", count=3, last=GENESIS)).model_dump_json())


def issued(authority: Authority, name: str = "arbiter") -> HeadSigner:
    """The signer of an Arbiter with a certificate, and a key, of its own."""
    replace = (authority.folder / name).exists()
    return HeadSigner.load(authority.issue(name, profile="arbiter", dns=["localhost"], replace=replace))


def test_a_renewed_certificate_with_a_new_key_goes_on(path: Path, tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "certs")
    before, now = issued(authority), issued(authority)
    assert before.key.public_key() != now.key.public_key()
    put_signed(path, before)
    assert read_own_head(path, now) == read_head(path)


def test_another_arbiter_s_head_is_refused_also_of_the_same_authority(path: Path, tmp_path: Path) -> None:
    authority = Authority.create(tmp_path / "certs")
    put_signed(path, issued(authority, "other"))
    with pytest.raises(UserError, match="was made with another key"):
        read_own_head(path, issued(authority))


def test_a_namesake_s_head_of_another_authority_is_refused(path: Path, tmp_path: Path) -> None:
    put_signed(path, issued(Authority.create(tmp_path / "theirs")))
    with pytest.raises(UserError, match="was made with another key") as caught:
        read_own_head(path, issued(Authority.create(tmp_path / "ours")))
    assert "move the transcript and its head away together" in caught.value.hint


@pytest.mark.parametrize("change", [{"count": 2}, {"signature": ""}, {"certificate": ""}])
def test_a_head_that_was_edited_is_refused(signed: Path, change: dict[str, object]) -> None:
    head = read_head(signed)
    assert head is not None
    put(head_path(signed), head.model_copy(update=change).model_dump_json())
    error = not_ours(signed)
    assert error.message.startswith(f"the head {head_path(signed)} proves nothing: ")
    assert error.hint == f"consilium transcript verify {signed}"


def test_what_is_no_head_is_refused(signed: Path) -> None:
    put(head_path(signed), "{}")
    error = not_ours(signed)
    assert error.message == f"{head_path(signed)} is not the head of a transcript"
    assert error.hint == f"consilium transcript verify {signed}"
