"""A person reads the debate, or learns exactly what is wrong with its record; the terminal stays theirs."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
import seals
import transcripts
from transcripts import BUILDER, SCEPTIC, event, turn

from consilium.errors import TranscriptError, UserError
from consilium.messages import Meta, Usage
from consilium.records import EventName, EventRecord, TurnOutcome
from consilium.transcript import head_path
from council.transcript import main, parser

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from consilium.records import AnyEntry

LINES = transcripts.sealed(transcripts.debate())


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path / "debate.jsonl"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    def command(*argv: object) -> tuple[int, str]:
        code = main([str(word) for word in argv])
        return code, capsys.readouterr().out

    return command


def write(path: Path, lines: list[bytes], *, vouched: int | None = None, signed: bool = True) -> Path:
    """Put a transcript on disk, with a head that vouches for its first ``vouched`` lines (default: all)."""
    transcripts.write(path, lines)
    head = transcripts.head_of(LINES[: len(lines) if vouched is None else vouched])
    head_path(path).write_text((seals.arbiter().signer.sign(head) if signed else head).model_dump_json())
    return path


def of(path: Path, *entries: AnyEntry) -> Path:
    return transcripts.write(path, transcripts.sealed([transcripts.header(), *entries]))


def ca(path: Path, pem: bytes | None = None) -> Path:
    file = path.with_name("ca.pem")
    file.write_bytes(seals.arbiter().authority if pem is None else pem)
    return file


def harmless(output: str) -> bool:
    return not any(
        unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in output.replace("\n", "")
    )


# --- show --------------------------------------------------------------------------------------------


def test_the_status_comes_first_and_then_what_was_said(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("show", write(path, LINES))
    assert code == 0
    for line in (
        "Topic     Should the billing service be rewritten?",
        "State     finished: the operator closed it",
        "Phases    OPENING, REBUTTAL",
        "Rounds    2 complete",
        "Turns     5: 3 speech, 1 skip, 1 failed",
        "Tokens    2,280, and unknown for 2 turns",
        "Elapsed   13.0 s, and 1.0 s paused",
        "Caps      max_rounds 3, max_tokens 9,000",
        f"Seats     {SCEPTIC}: sceptic; claude sonnet (deep); 2 turns; tokens 2,280",
        f"          {BUILDER}, shown as Speaker B: builder; qwen coder; 2 turns; tokens unknown",
        f"{SCEPTIC} (sceptic)  OPENING · turn 1 · tokens 900 in / 100 out · 12.5 s",
        "  Rewriting loses what the old code knows.",
        "· phase: REBUTTAL (previous OPENING)",
        "· moderator: Name the cost of waiting.",
        f"· turn 4, {BUILDER}, REBUTTAL: failed after 12.5 s: stalled",
        f"· paused: a turn failed (seats {BUILDER})",
        "· the debate ended: the operator closed it (outcome FINISHED)",
    ):
        assert line in output.splitlines()
    assert "turn started" not in output
    assert output.index("Topic ") < output.index("OPENING · turn 1") < output.index("· phase: REBUTTAL")


def test_every_event_is_shown_on_demand(path: Path, run: Callable[..., Any]) -> None:
    _, output = run("show", write(path, LINES), "--events")
    assert f"· turn 1, {SCEPTIC} turn started (phase OPENING, deadline_ms 120,000)" in output
    assert f"· {BUILDER} took a seat: builder (required yes, pseudonym Speaker B)" in output
    assert "· round completed (round 2)" in output


def test_a_file_alone_is_shown(path: Path, run: Callable[..., Any]) -> None:
    write(path, LINES)
    assert run(path) == run("show", path)


def test_nothing_in_a_record_reaches_the_terminal_as_a_command(path: Path, run: Callable[..., Any]) -> None:
    evil = transcripts.HOSTILE
    label = "\x1b]0;owned\x07\n· the debate ended"
    of(
        path,
        transcripts.joined(SCEPTIC, pseudonym=evil, meta={"brand": evil, "model": evil, "role_label": label}),
        event(EventName.DEBATE_STARTED),
        turn(1, text=evil, meta=Meta(brand=evil, model=evil, effort=evil, role_label=label)),
        turn(2, outcome=TurnOutcome.FAILED, detail=evil, refused=(evil, label)),
        event(EventName.DEBATE_PAUSED, reason="quota_exhausted", seats=[evil], resets_at=evil),
        event(EventName.MODERATOR_STEERING, SCEPTIC, text=evil),
        EventRecord(event=EventName.OPERATOR_COMMAND, data={evil: [evil, {evil: evil}]}),
        event(EventName.TOPIC_CHANGED, topic=evil),
        event(EventName.PHASE_CHANGED, phase=evil, previous=evil),
        event(EventName.PARTICIPANT_FAULT, SCEPTIC, reason=evil),
        event(EventName.DEBATE_ENDED, outcome=evil, cap=evil, reason=evil),
    )
    for options in ((), ("--events",), ("--json",), ("--events", "--json")):
        code, output = run("show", path, *options)
        assert code == 0
        assert harmless(output)
    assert "\n· the debate ended" not in run("show", path)[1].replace("\n· the debate ended: ", "")


def test_a_speech_cannot_pass_for_an_event_or_another_seat(path: Path, run: Callable[..., Any]) -> None:
    of(path, event(EventName.DEBATE_STARTED), turn(1, text=f"I agree.\n\n· paused: bomb\n{BUILDER}  OPENING"))
    _, output = run("show", path)
    assert "\n· paused" not in output
    assert f"\n{BUILDER}" not in output
    assert "\n  · paused: bomb\n" in output


def test_lines_are_wrapped_to_the_terminal(
    path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    of(
        path,
        event(EventName.DEBATE_STARTED),
        turn(1, text="word " * 60),
        event(EventName.DEBATE_PAUSED, reason="r " * 60),
    )
    _, output = run("show", path)
    said = [line for line in output.splitlines() if line.startswith("  word")]
    assert len(said) > 5
    assert all(len(line) <= 40 for line in said)
    assert "\n  r r r" in output


def test_colour_is_for_terminals_only(
    path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(path, LINES)
    assert "\x1b" not in run("show", path)[1]
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert "\x1b[" in run("show", path)[1]
    assert "\x1b" not in run("show", path, "--no-color")[1]


def test_a_debate_that_is_still_being_written_is_readable(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("show", write(path, [*LINES[:7], LINES[7][:50]], vouched=4))
    assert code == 0
    assert "The last line is incomplete" in output
    assert "State     running" in output
    assert "Rewriting loses" in output


def test_whoever_has_the_floor_is_told(path: Path, run: Callable[..., Any]) -> None:
    _, output = run("show", write(path, LINES[:6]))
    assert f"State     running; {SCEPTIC} has the floor" in output


def test_a_damaged_record_is_shown_as_far_as_it_goes_with_a_warning_above(
    path: Path, run: Callable[..., Any]
) -> None:
    lines = [*LINES[:5], b"\0\0\0\n", *LINES[6:]]
    code, output = run("show", write(path, lines, vouched=len(LINES)))
    assert code == 1
    assert output.startswith("This record is not whole.")
    assert "consilium transcript verify" in output
    assert "Rewriting loses" in output


def test_a_head_that_cannot_be_read_is_said_but_hides_nothing(path: Path, run: Callable[..., Any]) -> None:
    transcripts.write(path, LINES)
    head_path(path).write_text("?")
    code, output = run("show", path)
    assert code == 1
    assert "is not the head of a transcript" in output
    assert "Rewriting loses" in output


def test_records_of_a_later_version_are_left_out_and_counted(path: Path, run: Callable[..., Any]) -> None:
    last = transcripts.head_of(LINES).last
    line = json.dumps({"seq": len(LINES), "prev": last, "ts": "", "kind": "novel"}).encode() + b"\n"
    transcripts.write(path, [*LINES, line])
    code, output = run("show", path)
    assert code == 0
    assert "1 of the records are of a kind that this version does not know" in output


def test_a_file_without_records_is_refused_with_the_way_on(path: Path) -> None:
    for content in ([], [b"# A page\n", b"of text\n"]):
        transcripts.write(path, content)
        with pytest.raises(UserError, match="holds no record of a debate") as caught:
            main(["show", str(path)])
        assert "verify" in caught.value.hint


def test_of_a_folder_its_transcripts_are_listed(
    path: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, LINES)
    (path.parent / "a\x1b[1m\nb.jsonl").touch()
    monkeypatch.chdir(path.parent)
    code, output = run(".")
    assert (code, len(output.splitlines())) == (0, 2)
    assert output.endswith(f"{path.name}\n")
    assert "\x1b" not in output
    assert json.loads(run("show", "--json", path.parent)[1])["transcripts"][-1] == path.name


def test_a_folder_without_transcripts_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holds no \.jsonl file"):
        main([str(tmp_path)])
    with pytest.raises(UserError, match="not a regular file"):
        main(["verify", "."])


def test_a_folder_that_cannot_be_read_is_said_to_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_folder: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.iterdir", closed)
    with pytest.raises(UserError, match="cannot be read: Permission denied"):
        main([str(tmp_path)])


def test_a_debate_of_which_little_is_known_claims_nothing(path: Path, run: Callable[..., Any]) -> None:
    transcripts.write(path, transcripts.sealed([event(EventName.DEBATE_PAUSED)]))
    _, output = run("show", path)
    for line in (
        "Topic     unknown",
        "Debate    unknown",
        "State     paused",
        "Phases    none yet",
        "Turns     none yet",
        "Tokens    none reported",
        "Caps      unknown",
        "Seats     none yet",
        "· paused",
    ):
        assert line in output.splitlines()
    assert "Cost" not in output


def test_every_state_of_a_seat_and_a_turn_has_its_words(path: Path, run: Callable[..., Any]) -> None:
    of(
        path,
        event(EventName.DEBATE_STARTED),
        turn(1, tokens=(None, 80), meta=Meta(), usage=Usage(usd=0.125)),
        turn(2, BUILDER, tokens=(None, None), meta=Meta(adapter="pexpect")),
        event(EventName.PARTICIPANT_FAULT, BUILDER),
        event(EventName.PARTICIPANT_LEFT, SCEPTIC),
        event(EventName.CAP_REACHED, cap="max_seconds", used=3725.5, limit=None, final=False, of=[]),
        event(EventName.DEBATE_ENDED, outcome="STOPPED_BY_CAP", cap="max_seconds"),
    )
    _, output = run("show", path)
    for line in (
        "State     stopped by a cap: max_seconds",
        "Cost      $0.1250, as far as it was reported",
        f"Seats     {SCEPTIC}: no role; model unknown; 1 turn; tokens 80; left",
        f"          {BUILDER}: no role; pexpect; 1 turn; tokens unknown; at fault: failed",
        f"{SCEPTIC}  OPENING · turn 1 · tokens unknown in / 80 out · 12.5 s",
        f"{BUILDER}  OPENING · turn 2 · tokens unknown · 12.5 s",
        "· a cap is reached: max_seconds (used 3,725.5, final no)",
    ):
        assert line in output.splitlines()


def test_what_a_client_was_not_allowed_to_do_stands_below_its_turn(
    path: Path, run: Callable[..., Any]
) -> None:
    of(
        path,
        event(EventName.DEBATE_STARTED),
        turn(1, text="I could not look.", refused=("touch /etc/x", "cat /etc/shadow")),
        turn(2, BUILDER, outcome=TurnOutcome.SKIP, refused=("ls",)),
    )
    lines = run("show", path)[1].splitlines()
    at = lines.index("  I could not look.")
    assert lines[at + 1 : at + 3] == [
        f"· turn 1, {SCEPTIC} was not allowed to do this: touch /etc/x",
        f"· turn 1, {SCEPTIC} was not allowed to do this: cat /etc/shadow",
    ]
    assert lines[-1] == f"· turn 2, {BUILDER} was not allowed to do this: ls"


@pytest.mark.parametrize(
    ("back", "told"),
    [
        ("2026-11-30T18:30:00Z", "; it comes back: 2026-11-30 18:30 UTC"),
        ("2026-11-30T19:30:00+01:00", "; it comes back: 2026-11-30 18:30 UTC"),
        ("2026-11-30T18:30:00", "; it comes back: 2026-11-30T18:30:00"),
        ("3pm (Europe/Rome)", "; it comes back: 3pm (Europe/Rome)"),
        (None, ""),
    ],
)
def test_a_quota_that_is_used_up_is_told_with_its_seat_and_its_end(
    path: Path, run: Callable[..., Any], back: str | None, told: str
) -> None:
    of(
        path,
        event(EventName.DEBATE_STARTED),
        event(EventName.DEBATE_PAUSED, reason="quota_exhausted", seats=[SCEPTIC], resets_at=back),
    )
    lines = run("show", path)[1].splitlines()
    assert f"· paused: the quota of {SCEPTIC} is used up{told}" in lines
    assert "State     paused: a seat's quota is used up" in lines


def test_a_speech_without_text_and_a_time_that_cannot_be_read_are_no_obstacle(
    path: Path, run: Callable[..., Any]
) -> None:
    silent = turn(1).model_copy(update={"text": None, "duration_s": 7503.0})
    transcripts.write(path, transcripts.sealed([event(EventName.DEBATE_STARTED), silent]))
    assert "2 h 5 min\n  (no text)" in run("show", path)[1]


@pytest.mark.parametrize("options", [[], ["--events"]])
def test_json_holds_the_status_and_the_records_that_the_text_shows(
    path: Path, run: Callable[..., Any], options: list[str]
) -> None:
    code, output = run("show", write(path, LINES), "--json", *options)
    document = json.loads(output)
    assert code == 0
    assert document["status"]["state"] == "FINISHED"
    assert document["status"]["tokens_total"] == 2280
    assert document["status"]["turns"] == {"speech": 3, "skip": 1, "failed": 1}
    assert document["notices"] == []
    assert len(document["records"]) == (len(LINES) - 1 if options else 11)
    speech = next(
        record for record in document["records"] if record.get("turn_id") == 2 and record["kind"] == "turn"
    )
    assert speech["text"] == transcripts.HOSTILE
    assert speech["seq"] == 7


# --- verify ------------------------------------------------------------------------------------------


def test_a_whole_file_with_a_head_of_the_right_arbiter_is_whole(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("verify", write(path, LINES), "--ca", ca(path))
    assert code == 0
    assert f"{path}: whole" in output
    assert "The head vouches for 19 records; it is signed by spiffe://council.local/arbiter/main" in " ".join(
        output.split()
    )
    assert "whom the authority that was given vouches for" in " ".join(output.split())


def test_without_an_authority_what_is_not_proved_is_said(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("verify", write(path, LINES))
    assert code == 0
    assert "does not prove who holds that certificate" in " ".join(output.split())


def test_a_file_without_a_head_is_whole_and_it_is_said_what_that_does_not_prove(
    path: Path, run: Callable[..., Any]
) -> None:
    code, output = run("verify", transcripts.write(path, LINES))
    assert code == 0
    assert "There is no debate.jsonl.head beside it" in output
    assert "not proved" in output
    code, output = run("verify", path, "--ca", ca(path))
    assert code == 1
    assert "NOT PROVED" in output


@pytest.mark.parametrize("cut", [1, 7])
def test_a_file_without_a_head_that_stops_in_the_middle_is_said_to_do_so(
    path: Path, run: Callable[..., Any], cut: int
) -> None:
    assert "has not ended" not in run("verify", transcripts.write(path, LINES))[1]
    assert json.loads(run("verify", path, "--json")[1])["ended"] is True
    code, output = run("verify", transcripts.write(path, LINES[:-cut]))
    assert code == 0
    assert "  - The debate in it has not ended." in output.splitlines()
    assert json.loads(run("verify", path, "--json")[1])["ended"] is False


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([*LINES[:5], LINES[5].replace(b"OPENING", b"CLOSING"), *LINES[6:]], "line 6: record 5 was edited"),
        (LINES[:5] + LINES[6:], "line 6: record 5 is missing"),
        ([*LINES, LINES[-1]], "record 18 (line 20) stands in the file twice"),
        (LINES[:12], "the tail is cut: records 12 to 18"),
        ([*LINES[:-1], LINES[-1][:30]], "line 19, the last, is torn"),
        ([*LINES[:5], b"\0\0\n", *LINES[6:]], "line 6, where record 5 should be, holds a run of 2 NUL bytes"),
    ],
)
def test_damage_is_named_and_the_exit_code_says_so(
    path: Path, run: Callable[..., Any], lines: list[bytes], told: str
) -> None:
    code, output = run("verify", write(path, lines, vouched=len(LINES)))
    assert code == 1
    assert f"{path}: NOT WHOLE" in output
    assert told in " ".join(output.split())


def test_records_that_the_head_does_not_know_are_told(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("verify", write(path, LINES, vouched=17))
    assert code == 1
    assert "records 17 to 18 after the last that the head vouches for" in " ".join(output.split())


def test_an_unsigned_head_proves_nothing(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("verify", write(path, LINES, signed=False))
    assert code == 1
    assert "NOT PROVED" in output
    assert "it is not signed" in output


def test_a_head_of_a_stranger_is_refused_by_the_authority(path: Path, run: Callable[..., Any]) -> None:
    code, output = run(
        "verify", write(path, LINES), "--ca", ca(path, seals.pem(seals.authority().certificate))
    )
    assert code == 1
    assert "did not issue that" in " ".join(output.split())


def test_a_head_that_cannot_be_read_proves_nothing(path: Path, run: Callable[..., Any]) -> None:
    transcripts.write(path, LINES)
    head_path(path).write_text("{}")
    code, output = run("verify", path)
    assert code == 1
    assert "is not the head of a transcript" in " ".join(output.split())


def test_a_person_is_told_the_first_findings_and_how_many_more(path: Path, run: Callable[..., Any]) -> None:
    lines = [line for one in LINES for line in (one, b"{]\n")] + [b"x\n", *LINES[:1]] * 6
    code, output = run("verify", transcripts.write(path, lines))
    assert code == 1
    assert output.count("  ! ") == 21
    assert "more" in output
    _, output = run("verify", path, "--json")
    assert len(json.loads(output)["findings"]) > 21


def test_a_report_for_a_program_holds_everything(path: Path, run: Callable[..., Any]) -> None:
    code, output = run("verify", write(path, LINES), "--json", "--ca", ca(path))
    report = json.loads(output)
    assert code == 0
    assert report["whole"] is True
    assert (report["records"], report["findings"]) == (19, [])
    assert report["head"]["count"] == 19
    assert (report["signature"]["signature"], report["signature"]["issuer"]) == ("good", "good")
    code, output = run("verify", transcripts.write(path.with_name("cut.jsonl"), LINES[3:]), "--json")
    report = json.loads(output)
    assert code == 1
    assert (report["whole"], report["head"], report["signature"]) == (False, None, None)
    assert report["findings"] == [
        {"line": 1, "seq": 0, "kind": "missing", "message": "records 0 to 2 are missing"}
    ]


def test_a_file_that_no_record_can_be_read_of_is_not_whole(path: Path, run: Callable[..., Any]) -> None:
    for content in ([], [b"text\n"]):
        code, output = run("verify", write(path, content, vouched=3), "--ca", ca(path))
        assert code == 1
        assert "NOT WHOLE" in output


def test_what_cannot_be_read_at_all_is_an_error_of_the_user(path: Path) -> None:
    for command in ("show", "verify"):
        with pytest.raises(UserError, match="cannot be read"):
            main([command, str(path)])
    with pytest.raises(UserError, match="cannot be read"):
        main(["verify", str(write(path, LINES)), "--ca", str(path.with_name("no.pem"))])
    with pytest.raises(UserError, match="holds no certificate"):
        main(["verify", str(path), "--ca", str(ca(path, b"nothing"))])


def test_a_file_that_is_one_endless_line_is_no_transcript(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consilium.records.MAX_RECORD_BYTES", 1000)
    transcripts.write(path, [b"x" * 5000])
    for command in ("show", "verify"):
        with pytest.raises(TranscriptError, match="this is no transcript"):
            main([command, str(path)])


@pytest.mark.parametrize("argv", [[], ["show"], ["verify"], ["--frobnicate"], ["show", "f", "--frobnicate"]])
def test_a_command_line_that_makes_no_sense_ends_with_2(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(argv)
    assert stopped.value.code == 2
    assert "usage: consilium transcript" in capsys.readouterr().err


def test_the_parser_names_the_command_as_a_person_types_it() -> None:
    assert parser().prog == "consilium transcript"
