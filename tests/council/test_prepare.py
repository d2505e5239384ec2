"""`council.prepare`: what cannot be held is refused, in words, before anything is running or written."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from consilium.errors import UserError
from consilium.settings import load_council
from council import builtin
from council import prepare as prepare_module
from council.prepare import prepare
from council.up import parser
from wrapper.adapters import presets
from wrapper.adapters.choosing import project

if TYPE_CHECKING:
    from consilium.config import Council
    from council.startup import Job

ANY_PORTS = ("--control-port", "0", "--data-port", "0", "--admin-port", "0")
SEATS = "participants: [{name: a, preset: llm}, {name: b, preset: llm}]\n"
LEAST = "topic: Shall we?\ncaps: {max_rounds: 3}\n"


@pytest.fixture(autouse=True)
def _somewhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(prepare_module, "model_file", lambda: Path("model.gguf"))
    for name in ("HOST", "CONTROL_PORT", "DATA_PORT", "ADMIN_PORT", "MODEL_URL"):
        monkeypatch.delenv(f"CONSILIUM_{name}", raising=False)


def prepared(*arguments: str) -> Job:
    return prepare(parser().parse_args([*ANY_PORTS, *arguments]))


def council(*arguments: str) -> Council:
    return prepared(*arguments).council


def refusal(*arguments: str) -> str:
    with pytest.raises(UserError) as caught:
        prepared(*arguments)
    assert not Path("debates").exists(), "something was written before the refusal"
    return str(caught.value)


def write(text: str) -> str:
    Path("c.yaml").write_text(text, encoding="utf-8")
    return "c.yaml"


# --- the council ---------------------------------------------------------------------------------------


def test_without_a_file_three_seats_debate_the_built_in_topic() -> None:
    held = council()
    assert held.topic == builtin.TOPIC
    assert [(seat.name, seat.role) for seat in held.participants] == [
        ("sceptic", "sceptic"),
        ("pragmatist", "pragmatist"),
        ("devils_advocate", "devils-advocate"),
    ]


def test_a_variable_that_is_to_be_passed_on_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of a debate that ends with its first turn, in the words of a client that knows no seats."""
    seats = (
        "participants: [{name: a, preset: llm, env: [ONE, TWO]}, {name: b, preset: llm, env: [ONE, SET]}]\n"
    )
    file = write(LEAST + seats)
    monkeypatch.setenv("SET", "x")
    monkeypatch.setenv("TWO", "")
    said = refusal("-f", file)
    assert said.startswith("there is no value for ONE and TWO (env of a), ONE (env of b)\n")
    assert "consilium doctor --council FILE" in said
    monkeypatch.setenv("ONE", "x")
    monkeypatch.setenv("TWO", "x")
    assert [seat.env for seat in council("-f", file).participants] == [("ONE", "TWO"), ("ONE", "SET")]


def test_a_native_client_may_have_a_login_in_the_place_of_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    seat = "{name: a, preset: claude, harness_profile: native, cwd: ., env: [ANTHROPIC_API_KEY%s]}"
    held = council("-f", write(LEAST + f"participants: [{seat % ''}]\n"))
    assert held.participants[0].env == ("ANTHROPIC_API_KEY",)
    shutil.rmtree("debates")
    assert "there is no value for OTHER (env of a)" in refusal(
        "-f", write(LEAST + f"participants: [{seat % ', OTHER'}]\n")
    )


def test_a_native_client_works_where_its_file_says_and_never_among_the_keys_of_the_debate() -> None:
    Path("project").mkdir()
    native = "preset: llm, harness_profile: native"
    listed = f"{{name: a, {native}, cwd: project}}, {{name: b, {native}}}, {{name: c, preset: llm}}"
    seats = f"participants: [{listed}]\n"
    kept = prepared("-f", write(LEAST + seats)).space.council
    works_in = [project(seat, kept) for seat in load_council(kept).participants]
    assert works_in == [Path.cwd() / "project", Path.cwd(), None]


def test_a_preset_beside_the_file_is_found_and_goes_along() -> None:
    Path("presets").mkdir()
    text = (Path(presets.__file__).parents[1] / "presets" / "llm.toml").read_text()
    Path("presets/mine.toml").write_text(text.replace('name = "llm"', 'name = "mine"'))
    file = write(LEAST + "participants: [{name: a, preset: mine}]\n")
    kept = prepared("-f", file).space.council
    assert presets.load_preset("mine", presets.own_presets(kept)).brand == "llm"
    assert presets.own_presets(None) is None


def test_a_preset_that_nobody_has_is_refused() -> None:
    assert "there is no preset called 'mine'" in refusal(
        "-f", write(LEAST + "participants: [{name: a, preset: mine}]\n")
    )


def test_a_project_that_is_not_there_is_refused() -> None:
    seats = "participants: [{name: a, preset: llm, harness_profile: native, cwd: gone}]\n"
    said = refusal("-f", write(LEAST + seats))
    assert f"a: cwd: {Path.cwd() / 'gone'} is not a folder" in said
    seats = "participants: [{name: a, preset: llm, cwd: gone}]\n"
    assert "cwd is for harness_profile: native" in refusal("-f", write(LEAST + seats))


def test_the_knobs_reach_the_council() -> None:
    held = council(
        *("--topic", "Tea?", "--rebuttals", "4"),
        *("--max-rounds", "7", "--max-tokens", "8", "--max-seconds", "9.5"),
    )
    assert (held.topic, held.rebuttal_rounds) == ("Tea?", 4)
    assert (held.caps.max_rounds, held.caps.max_tokens, held.caps.max_seconds) == (7, 8, 9.5)


def test_seats_take_different_roles_as_long_as_there_are_some() -> None:
    seats = council("--seats", "14").participants
    assert len({seat.name for seat in seats}) == 14
    assert len({seat.role for seat in seats[:12]}) == 12
    assert [seat.name for seat in seats[12:]] == ["sceptic_2", "pragmatist_2"]


def test_roles_are_taken_as_they_are_named() -> None:
    seats = council("--roles", "historian, dx,historian").participants
    assert [(seat.name, seat.role) for seat in seats] == [
        ("historian", "historian"),
        ("dx", "dx"),
        ("historian_2", "historian"),
    ]


def test_a_file_is_held_with_what_the_command_line_says_on_top() -> None:
    held = council("-f", write(LEAST + SEATS), "--max-rounds", "5")
    assert (held.topic, held.caps.max_rounds) == ("Shall we?", 5)
    assert [seat.name for seat in held.participants] == ["a", "b"]


def test_a_file_without_seats_is_filled_from_the_command_line() -> None:
    assert [seat.name for seat in council("-f", write(LEAST), "--seats", "1").participants] == ["sceptic"]


def test_a_role_beside_the_file_is_found_and_kept_with_the_debate() -> None:
    Path("roles").mkdir()
    Path("roles/mine.md").write_text("---\nlabel: Mine\nsummary: Mine.\n---\nSay so.\n", encoding="utf-8")
    job = prepared("-f", write(LEAST), "--roles", "mine")
    assert (job.space.folder / "roles" / "mine.md").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--seats", "0"], "a council has 1 to 64 seats (given: 0)"),
        (["--seats", "65"], "a council has 1 to 64 seats (given: 65)"),
        (["--seats", "3", "--roles", "dx"], "--seats says 3, but --roles names 1\n  give one of the two"),
        (["--roles", "sceptik"], "there is no role called 'sceptik'\n  did you mean sceptic?"),
        (["--roles", ""], "there is no role called ''"),
        (
            ["--max-rounds", "0"],
            "built-in council: command line: caps.max_rounds: must be more than 0 (given: 0)",
        ),
        (
            ["--rebuttals", "-1"],
            "built-in council: command line: rebuttal_rounds: must be at least 0 (given: -1)",
        ),
        (["--topic", ""], "built-in council: command line: topic: must not be empty (given: '')"),
        (["-f", "nowhere.yaml"], "nowhere.yaml: cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_knob_is_refused(arguments: list[str], told: str) -> None:
    assert refusal(*arguments).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "topic: x\n" + SEATS,
            "c.yaml: caps: at least one cap is mandatory: max_rounds, max_tokens, max_seconds or max_usd",
        ),
        (LEAST, "nobody is to be seated\n  name participants in the file, or give --seats N"),
        (
            LEAST + "participants: [{name: ca}]\n",
            "a seat cannot be called ca here: the folder ca is the authority's\n  give the participant",
        ),
        (
            LEAST + "participants: [{name: a, role: nothing-like-it}]",
            "there is no role called 'nothing-like-it'",
        ),
        (
            LEAST + "participants: [{name: ana, adapter: human}]",
            """`consilium up` seats clients, which ana (human) is not
  take them out of the file, or hold it in processes of its own: docs/human.md""",
        ),
        (
            LEAST + SEATS + "roster: {participants: [{name: a}, {name: b}, {name: zoe}]}",
            (
                "the roster waits for zoe, which participants does not name\n"
                "  add the participant, or take the name out of the roster"
            ),
        ),
        (
            LEAST + SEATS + "roster: {participants: [{name: a}]}",
            (
                "participants names b, which the static roster does not admit\n"
                "  add the name under roster.participants, or leave that list out"
            ),
        ),
        (LEAST + "turn_policy: loudest", "c.yaml, line 3: turn_policy: must be 'round_robin'"),
    ],
)
def test_a_council_that_cannot_sit_is_refused(text: str, told: str) -> None:
    assert refusal("-f", write(text)).startswith(told)


@pytest.mark.parametrize("knob", [["--seats", "2"], ["--roles", "dx"]])
def test_seats_are_chosen_in_one_place(knob: list[str]) -> None:
    assert refusal("-f", write(LEAST + SEATS), *knob) == (
        "c.yaml names its own participants\n  leave out --seats and --roles, or leave out the file"
    )


def test_an_embedded_model_that_is_not_installed_is_missed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Path:
        raise UserError("the embedded model is not installed")

    monkeypatch.setattr(prepare_module, "model_file", missing)
    assert refusal() == "the embedded model is not installed"
    monkeypatch.setenv("CONSILIUM_MODEL_URL", "http://127.0.0.1:9/v1")
    named = LEAST + "participants: [{name: a, preset: llm, model: m}]\n"
    assert council("-f", write(named)).topic == "Shall we?"


def test_at_a_server_of_ones_own_every_seat_names_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSILIUM_MODEL_URL", "http://127.0.0.1:9/v1")
    seats = "participants: [{name: a, model: m}, {name: b}, {name: c}]\n"
    assert refusal("-f", write(LEAST + seats)) == (
        "CONSILIUM_MODEL_URL names the server http://127.0.0.1:9/v1, but nothing names the model of b, c\n"
        "  give each of these participants its `model` in a council file (-f), or unset the variable"
    )


# --- ports ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["control", "data", "admin", "metrics"])
def test_a_port_in_use_is_named_before_anything_is_started(name: str) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert refusal(f"--{name}-port", str(port)) == (
            f"port {port} for {name} is in use\n  give another with --{name}-port N; 0 takes any free one"
        )


def test_all_ports_in_use_are_named_in_one_message() -> None:
    with socket.socket() as one, socket.socket() as two:
        for other in (one, two):
            other.bind(("127.0.0.1", 0))
            other.listen()
        first, second = (other.getsockname()[1] for other in (one, two))
        assert refusal("--control-port", str(first), "--admin-port", str(second)) == (
            f"port {first} for control is in use, and port {second} for admin is in use\n"
            "  give another with --control-port N, --admin-port N; 0 takes any free one"
        )


@pytest.mark.parametrize("wrong", ["role: nothing-like-it", "preset: clod"])
def test_what_is_wrong_in_the_file_is_told_before_what_is_wrong_with_a_port(wrong: str) -> None:
    seats = f"participants: [{{name: a, {wrong}}}]\n"
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        told = refusal("-f", write(LEAST + seats), "--data-port", str(other.getsockname()[1]))
    assert told.startswith("there is no ")


def test_one_port_cannot_serve_two_channels() -> None:
    assert refusal("--control-port", "7001", "--admin-port", "7001") == (
        "control and admin cannot both have port 7001"
    )


@pytest.mark.parametrize("port", ["-1", "65536"])
def test_what_is_no_port_is_refused(port: str) -> None:
    assert refusal("--data-port", port).startswith(f"data_port must be a port, 0 to 65535 (given: {port})")


def test_a_port_that_may_not_be_used_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(self: socket.socket, address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", forbid)
    assert refusal().startswith("port 0 for control cannot be used: Permission denied")


def test_the_environment_gives_the_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, port in (("CONTROL", "0"), ("DATA", "0"), ("ADMIN", "0")):
        monkeypatch.setenv(f"CONSILIUM_{name}_PORT", port)
    ports = prepare(parser().parse_args([])).ports
    assert (ports.control_port, ports.data_port, ports.admin_port) == (0, 0, 0)


# --- the folder ----------------------------------------------------------------------------------------


def test_a_debate_has_a_folder_of_its_own_under_debates() -> None:
    folder = prepared("--topic", "Tea or coffee?").space.folder
    assert folder.parent == Path("debates").absolute()
    assert folder.name.endswith("-tea-or-coffee")


def test_a_folder_can_be_given() -> None:
    assert prepared("--dir", "here").space.folder == Path("here").absolute()


def test_a_folder_that_is_not_empty_is_refused() -> None:
    Path("c.yaml").touch()
    assert refusal("--dir", ".") == ". is not empty\n  give --dir a folder that is new or empty"


def test_a_client_that_nobody_knows_is_refused_before_anything_starts() -> None:
    Path("c.yaml").write_text(LEAST + "participants: [{name: a, preset: clod}]\n")
    with pytest.raises(UserError, match="there is no preset called 'clod'"):
        prepared("-f", "c.yaml")


@pytest.mark.parametrize(
    ("seat", "words"),
    [
        ("adapter: human", r"a \(human\)"),
        ("adapter: pexpect", "the client llm cannot be used in a terminal"),
        ("adapter: pexpect, preset: codex", "codex has no harness profile restricted in a terminal"),
    ],
)
def test_a_seat_that_cannot_be_run_is_refused_before_anything_starts(seat: str, words: str) -> None:
    Path("c.yaml").write_text(LEAST + f"participants: [{{name: a, {seat}}}]\n")
    with pytest.raises(UserError, match=words):
        prepared("-f", "c.yaml")
