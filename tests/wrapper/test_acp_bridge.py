"""`wrapper.bridges.acp`: a turn over the Agent Client Protocol, whatever the agent makes of it."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest
from leftovers import Leftovers

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.bridges import acp

pytest_plugins = ("seat_fixtures",)

AGENT = Path(__file__).parents[1] / "standins" / "acp_agent.py"
BRIDGE = (sys.executable, "-I", "-S", acp.__file__)
Script = dict[str, Any]
"""For a method, the acts of the agent: each a list."""


@dataclass(frozen=True, slots=True)
class Told:
    """What a bridge printed, and how it ended."""

    code: int
    lines: list[dict[str, Any]]
    errors: str
    heard: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]

    @property
    def text(self) -> str:
        return "".join(line["text"] for line in self.of("message"))

    @property
    def methods(self) -> list[str]:
        return [message["method"] for message in self.heard if "method" in message]


class Standard:
    """A standard stream, of which the bridge uses the bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.buffer = io.BytesIO(data)


@dataclass(frozen=True, slots=True)
class Bridge:
    """Runs the bridge with an agent that follows a script: here, or apart, as the sandbox does."""

    folder: Path
    env: dict[str, str]
    monkeypatch: pytest.MonkeyPatch

    def arguments(self, script: Script, *options: str) -> tuple[str, ...]:
        return (*options, "--", "-I", "-S", str(AGENT), json.dumps(script))

    def argv(self, script: Script, *options: str, program: str = sys.executable) -> tuple[str, ...]:
        return (*BRIDGE, program, *self.arguments(script, *options))

    def __call__(self, script: Script, *options: str, prompt: bytes = b"hello") -> Told:
        spoken, told, errors = Standard(prompt), Standard(), Standard()
        with self.monkeypatch.context() as patched:
            for name, stream in (("stdin", spoken), ("stdout", told), ("stderr", errors)):
                patched.setattr(sys, name, stream)
            for name, value in self.env.items():
                patched.setenv(name, value)
            patched.chdir(self.folder)
            code = acp.main(sys.executable, list(self.arguments(script, *options)))
        return self.told(code, told.buffer.getvalue(), errors.buffer.getvalue())

    def apart(self, script: Script, *options: str) -> Told:
        done = subprocess.run(
            self.argv(script, *options), input=b"hello", capture_output=True, env=self.env, cwd=self.folder,
            timeout=30, check=False,
        )  # fmt: skip
        return self.told(done.returncode, done.stdout, done.stderr)

    def told(self, code: int, output: bytes, errors: bytes) -> Told:
        lines = [json.loads(line) for line in output.split(b"\n") if line]
        file = Path(self.env["HEARD"])
        heard = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return Told(code, lines, errors.decode(), heard)


@pytest.fixture
def bridge(tmp_path: Path, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    places = {"HEARD": str(tmp_path / "heard"), "CHATS": str(tmp_path / "chats [1]")}
    return Bridge(tmp_path, {**leftovers.env, **places}, monkeypatch)


END = {"type": "end", "session": "s-1", "stop": "end_turn", "usage": None}


def test_a_turn_begins_a_chat_and_is_told_in_lines(bridge: Bridge, tmp_path: Path) -> None:
    told = bridge({})
    assert told.lines == [{"type": "message", "text": "hello"}, END]
    assert (told.code, told.errors) == (0, "")
    assert told.methods == ["initialize", "session/new", "session/prompt"]
    offered = told.heard[0]["params"]
    assert offered["protocolVersion"] == 1
    assert offered["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": False,
    }
    assert told.heard[1]["params"] == {"cwd": str(tmp_path), "mcpServers": []}
    assert told.heard[2]["params"] == {"sessionId": "s-1", "prompt": [{"type": "text", "text": "hello"}]}


def test_it_is_told_alike_by_a_program_of_its_own(bridge: Bridge) -> None:
    told = bridge.apart({})
    assert (told.lines, told.code, told.errors) == ([{"type": "message", "text": "hello"}, END], 0, "")


def test_a_copy_of_a_chat_has_an_id_of_its_own(bridge: Bridge) -> None:
    told = bridge({}, "--fork", "s-1", "--cwd", "/elsewhere")
    assert told.lines[-1] == {**END, "session": "s-2"}
    assert told.heard[1]["method"] == "session/fork"
    assert told.heard[1]["params"] == {"sessionId": "s-1", "cwd": "/elsewhere", "mcpServers": []}


ONLY_LOADS = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}


@pytest.mark.parametrize(
    ("script", "method"),
    [({}, "session/resume"), ({"initialize": [["result", ONLY_LOADS]]}, "session/load")],
)
def test_a_chat_itself_is_resumed_without_its_history_or_else_with_it(
    bridge: Bridge, script: Script, method: str
) -> None:
    history = [["chunk", "an old answer"], ["result", {}]]
    told = bridge({**script, method: history}, "--resume", "s-9")
    assert told.methods[1] == method
    assert told.text == "hello", "history is not the answer"
    assert told.lines[-1]["session"] == "s-9"


@pytest.mark.parametrize(
    ("option", "able"),
    [
        ("--fork", {"loadSession": True}),
        ("--resume", {"loadSession": False}),
        ("--fork", None),
        ("--resume", []),
    ],
)
def test_what_the_agent_does_not_offer_is_not_asked_for(bridge: Bridge, option: str, able: Any) -> None:
    told = bridge(
        {"initialize": [["result", {"protocolVersion": 1, "agentCapabilities": able}]]}, option, "s-1"
    )
    assert told.code == 1
    assert told.methods == ["initialize"]
    assert "does not offer it" in told.lines[-1]["message"]


@pytest.mark.parametrize(
    ("wish", "asked"),
    [
        ("mode=ask", [("mode", "ask")]),
        ("model=m1", []),
        ("model=One", []),
        ("model=Two", [("model", "m2")]),
        ("model=m2", [("model", "m2")]),
    ],
)
def test_a_choice_is_made_by_id_or_by_name_and_only_if_it_changes_something(
    bridge: Bridge, wish: str, asked: list[tuple[str, str]]
) -> None:
    told = bridge({}, "--set", wish)
    made = [
        message["params"] for message in told.heard if message.get("method") == "session/set_config_option"
    ]
    assert [(one["configId"], one["value"]) for one in made] == asked
    assert told.code == 0


@pytest.mark.parametrize(
    ("script", "wish", "words"),
    [
        ({}, "model=m3", "the choice of model: the agent offers no m3; it has: m1, m2"),
        ({}, "thought_level=high", "the choice of thought_level: the agent offers none"),
        (
            {"session/new": [["result", {"sessionId": "s-1"}]]},
            "mode=ask",
            "the choice of mode: the agent offers none",
        ),
        (
            {"session/set_config_option": [["error", {"code": -1, "message": "not now"}]]},
            "mode=ask",
            "session/set_config_option: not now",
        ),
    ],
)
def test_a_choice_that_cannot_be_made_ends_the_turn_before_the_prompt(
    bridge: Bridge, script: Script, wish: str, words: str
) -> None:
    told = bridge(script, "--set", wish)
    assert told.lines == [{"type": "error", "message": words}]
    assert told.code == 1
    assert "session/prompt" not in told.methods


OPTIONS = [
    {"optionId": "yes", "kind": "allow_once"},
    {"optionId": "always", "kind": "allow_always"},
    {"optionId": "never", "kind": "reject_always"},
    {"optionId": "no", "kind": "reject_once"},
]
CALL = {
    "title": "Bash", "toolCallId": "1", "rawInput": {"command": "rm x"},
    "content": [{"type": "content", "content": {"type": "text", "text": "Run rm x"}}, "nonsense"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("parameters", "outcome", "call"),
    [
        (
            {"options": OPTIONS, "toolCall": CALL},
            {"outcome": "selected", "optionId": "no"},
            {"title": "Bash", "input": {"command": "rm x"}, "text": "Run rm x"},
        ),
        ({"options": OPTIONS[:3]}, {"outcome": "selected", "optionId": "never"}, {}),
        ({"options": OPTIONS[:2]}, {"outcome": "cancelled"}, {}),
        ({"options": [["kind"], {"kind": ["reject_once"]}]}, {"outcome": "cancelled"}, {}),
        ({"options": "all", "toolCall": []}, {"outcome": "cancelled"}, {}),
    ],
)
def test_a_permission_is_refused_and_told(
    bridge: Bridge, parameters: dict[str, Any], outcome: dict[str, str], call: dict[str, Any]
) -> None:
    ask = ["ask", "session/request_permission", parameters]
    told = bridge({"session/prompt": [ask, ["result", {"stopReason": "end_turn"}]]})
    assert json.loads(told.text) == {"result": {"outcome": outcome}}
    assert told.of("refused") == [{"type": "refused", "call": call}]
    assert told.lines[-1] == END


def test_a_refusal_tells_what_the_agent_said_of_the_call_before(bridge: Bridge) -> None:
    begun = {
        "sessionUpdate": "tool_call", "toolCallId": "1", "title": "Bash", "rawInput": {"command": "rm x"},
        "content": [{"type": "content", "content": {"type": "text", "text": "rm a long name"}}],
    }  # fmt: skip
    other = {"sessionUpdate": "tool_call", "toolCallId": "2", "title": "Read", "rawInput": {"path": "y"}}
    words = [{"type": "content", "content": {"type": "text", "text": "rm a l…"}}]
    ask = {"options": OPTIONS, "toolCall": {"toolCallId": "1", "title": "Run rm", "content": words}}
    turn = [["update", begun], ["update", other], ["ask", "session/request_permission", ask], ["result", {}]]
    told = bridge({"session/prompt": turn})
    assert told.of("refused") == [
        {
            "type": "refused",
            "call": {"title": "Run rm", "input": {"command": "rm x"}, "text": "rm a long name; rm a l…"},
        }
    ]


@pytest.mark.parametrize("method", ["fs/read_text_file", "terminal/create", "elicitation/create", "nonsense"])
def test_nothing_else_is_offered(bridge: Bridge, method: str) -> None:
    told = bridge({"session/prompt": [["ask", method, {"path": "/etc/passwd"}], ["result", {}]]})
    assert json.loads(told.text) == {"error": {"code": -32601, "message": "not offered"}}
    assert told.code == 0


STEPS = ["initialize", "session/new", "session/set_config_option", "session/prompt"]


@pytest.mark.parametrize(
    ("step", "act", "words"),
    [
        *((step, ["die", 3], "the agent ended with exit code 3") for step in STEPS),
        ("initialize", ["die", 0], "the agent ended with exit code 0"),
        ("session/prompt", ["kill", 9], "the agent ended by signal 9"),
        ("session/prompt", ["mute"], "the agent closed its output"),
        ("session/new", ["raw", '{"jsonrpc": "2.0", "id": 1, "resu'], "exit code 4"),
    ],
)
def test_an_agent_that_ends_at_any_step_ends_the_turn(
    bridge: Bridge, step: str, act: list[Any], words: str
) -> None:
    told = bridge({step: [act, ["die", 4]]}, "--set", "mode=ask")
    assert told.code == 1
    assert told.lines == []
    assert f"{step}: " in told.errors
    assert words in told.errors


def test_what_an_agent_complains_of_comes_before_what_we_say(bridge: Bridge) -> None:
    told = bridge.apart({"session/prompt": [["complain", "out of memory\n"], ["die", 4]]})
    assert told.errors == "out of memory\nsession/prompt: the agent ended with exit code 4\n"
    assert told.code == 1


@pytest.mark.parametrize("step", STEPS)
def test_an_error_at_any_step_ends_the_turn(bridge: Bridge, step: str) -> None:
    told = bridge({step: [["error", {"code": -32000, "message": "not now"}]]}, "--set", "mode=ask")
    assert told.lines[-1] == {"type": "error", "message": f"{step}: not now"}
    assert told.code == 1
    assert told.errors == ""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ({"code": -32603, "message": "Internal", "data": {"details": "disk full"}}, "Internal: disk full"),
        ({"code": -32603, "message": "Internal", "data": {"message": "why"}}, "Internal: why"),
        ({"message": "Internal", "data": "why"}, "Internal: why"),
        ({"code": 7}, 'an error without words: {"code": 7}'),
        ("nonsense", 'an error without words: "nonsense"'),
        (None, "an error without words: null"),
    ],
)
def test_an_error_is_told_in_the_agents_words(bridge: Bridge, error: Any, words: str) -> None:
    told = bridge({"session/prompt": [["error", error]]})
    assert told.lines == [{"type": "error", "message": f"session/prompt: {words}"}]


@pytest.mark.parametrize("version", [2, 0, "1", None, [1]])
def test_another_version_of_the_protocol_is_not_spoken(bridge: Bridge, version: Any) -> None:
    told = bridge({"initialize": [["result", {"protocolVersion": version}]]})
    assert told.code == 1
    assert told.methods == ["initialize"]
    assert f"initialize: the agent speaks version {version!r} of the protocol" in told.errors


@pytest.mark.parametrize("session", [None, 7, "", "../../etc", "a\u0000b", {"id": 1}])
def test_a_chat_without_a_usable_name_is_none(bridge: Bridge, session: Any) -> None:
    told = bridge({"session/new": [["result", {"sessionId": session}]]})
    assert told.code == 1
    assert "session/new: the agent names no session" in told.errors
    assert "session/prompt" not in told.methods


NOISE: list[list[Any]] = [
    ["raw", "Welcome!\n"],
    ["raw", "\n"],
    ["raw", "[1, 2]\n"],
    ["deep", 100_000],
    ["raw", "\udcff\udcfe\n"],
    ["send", {"jsonrpc": "2.0", "id": 999, "result": {"stopReason": "nobody asked"}}],
    ["send", {"jsonrpc": "2.0", "id": None, "error": {"message": "nobody asked"}}],
    ["send", {"jsonrpc": "2.0", "method": "session/update"}],
    ["send", {"jsonrpc": "2.0", "method": "session/update", "params": [1]}],
    ["send", {"jsonrpc": "2.0", "method": 5, "params": {}}],
    ["update", None],
    ["update", {"sessionUpdate": "agent_message_chunk"}],
    ["update", {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}}],
    ["update", {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 5}}],
    ["update", {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}}],
    ["update", {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "not yours"}}],
    ["update", {"sessionUpdate": "tool_call", "title": "Read"}],
    ["chunk", "of another chat", "s-7"],
]


@pytest.mark.parametrize("step", STEPS)
def test_what_is_no_part_of_the_answer_is_passed_over(bridge: Bridge, step: str) -> None:
    answers = {
        "initialize": {"protocolVersion": 1},
        "session/new": {
            "sessionId": "s-1",
            "configOptions": [{"id": "mode", "options": [{"value": "ask", "name": "Ask"}]}],
        },
    }
    told = bridge(
        {step: [*NOISE, ["result", answers.get(step, {"stopReason": "end_turn"})]]}, "--set", "mode=ask"
    )
    assert told.code == 0, told.errors
    assert told.text == ("" if step == "session/prompt" else "hello")
    assert told.lines[-1] == END


def test_a_greeting_may_be_the_reason_and_is_not_lost(bridge: Bridge) -> None:
    told = bridge({"initialize": [["raw", "kimi needs a newer Node\n"], ["die", 1]]})
    assert "initialize: the agent wrote what is no message: kimi needs a newer Node" in told.errors


def test_text_of_any_kind_stays_what_it_is(bridge: Bridge) -> None:
    text = "é\u2028\u0085\x1b[31m\x00\x7f \U0001f600 \u202e end"
    told = bridge({"session/prompt": [["chunk", text], ["chunk", "\ud800"], ["result", {}]]})
    assert told.text == f"{text}?"
    assert told.lines[-1]["stop"] is None


def test_what_comes_after_the_answer_is_no_part_of_it(bridge: Bridge) -> None:
    late = [["result", {"stopReason": "end_turn"}], ["chunk", "too late"]]
    assert bridge({"session/prompt": late}).lines == [END]


def test_usage_that_the_agent_tells_is_told(bridge: Bridge) -> None:
    usage = {"inputTokens": 5, "outputTokens": 7}
    told = bridge({"session/prompt": [["result", {"stopReason": "end_turn", "usage": usage}]]})
    assert told.lines[-1]["usage"] == usage


def test_a_megabyte_goes_both_ways_at_once(bridge: Bridge) -> None:
    prompt = "".join(f"{line:07d} \u00e9\n" for line in range(100_000))
    # The agent talks before it listens: neither side may wait for the other.
    told = bridge(
        {"initialize": [["huge", 2_000_000], ["result", {"protocolVersion": 1}]]}, prompt=prompt.encode()
    )
    assert told.text == prompt
    assert told.heard[-1]["params"]["prompt"][0]["text"] == prompt


def test_an_agent_that_does_not_listen_is_not_waited_for_for_ever(bridge: Bridge) -> None:
    told = bridge({"session/new": [["result", {"sessionId": "s-1"}], ["die", 5]]}, prompt=b"x" * 3_000_000)
    assert "session/prompt: the agent ended with exit code 5" in told.errors


def test_a_line_beyond_all_bounds_is_not_read_to_its_end(bridge: Bridge) -> None:
    told = bridge({"session/prompt": [["huge", acp.MAX_LINE], ["result", {}]]})
    assert told.code == 1
    assert f"session/prompt: the agent wrote a line of more than {acp.MAX_LINE} bytes" in told.errors


@pytest.mark.slow
def test_an_agent_that_does_not_end_is_ended(bridge: Bridge) -> None:
    told = bridge({"end": [["sleep", 60]]})
    assert told.lines[-1] == END
    assert told.code == 0


# --- what the client writes down ------------------------------------------------------------------------

RECORD = ("--record", "$CHATS/{id}/*.jsonl", "--type", "used", "--type", "said")


def record(**members: Any) -> str:
    return json.dumps(members) + "\n"


def test_what_a_turn_added_to_the_clients_own_record_is_told(bridge: Bridge) -> None:
    old = [["write", "s-1/a.jsonl", record(type="used", tokens=1)], ["result", {"sessionId": "s-1"}]]
    turn = [
        ["write", "s-1/a.jsonl", record(type="used", tokens=2) + record(type="other") + "not JSON\n[]\n"],
        ["write", "s-1/b.jsonl", record(type="said", text="\ud83d")],
        ["write", "s-2/a.jsonl", record(type="used", tokens=9)],
        ["result", {"stopReason": "end_turn"}],
    ]
    last = [["write", "s-1/a.jsonl", record(type="used", tokens=3)]]
    told = bridge({"session/new": old, "session/prompt": turn, "end": last}, *RECORD)
    assert [line["record"] for line in told.of("record")] == [
        {"type": "used", "tokens": 2},
        {"type": "used", "tokens": 3},
        {"type": "said", "text": "?"},
    ]
    assert told.lines[-1] == END, "the agent has written everything down by then"


def test_a_turn_that_failed_tells_its_record_too(bridge: Bridge) -> None:
    turn = [["write", "s-1/a.jsonl", record(type="used", tokens=2)], ["error", {"message": "no"}]]
    told = bridge({"session/prompt": turn}, *RECORD)
    assert [line["type"] for line in told.lines] == ["record", "error"]


def test_a_variable_that_is_not_set_names_no_files(bridge: Bridge) -> None:
    turn = [["write", "s-1/a.jsonl", record(type="used")], ["result", {}]]
    told = bridge({"session/prompt": turn}, "--record", "$NOWHERE/{id}/*.jsonl", "--type", "used")
    assert told.lines == [{**END, "stop": None}]


# --- in the sandbox ---------------------------------------------------------------------------------------


async def run(bridge: Bridge, argv: tuple[str, ...], seconds: float = 20) -> sandbox.Completed:
    command = sandbox.Command(argv=argv, env=bridge.env, cwd=bridge.folder, stdin=b"hello", bridged=True)
    return await sandbox.run(command, sandbox.Bounds(overall=seconds))


@pytest.mark.anyio
async def test_a_program_that_is_not_there_was_sent_nothing(bridge: Bridge) -> None:
    with pytest.raises(AdapterFault) as raised:
        await run(bridge, bridge.argv({}, program="no-such-client"))
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert raised.value.detail == "no-such-client is not installed, or not on the PATH that the client gets"


@pytest.mark.anyio
@pytest.mark.parametrize("step", STEPS)
async def test_an_agent_that_hangs_is_ended_with_the_bridge(
    bridge: Bridge, leftovers: Leftovers, step: str
) -> None:
    argv = bridge.argv({step: [["orphan", "60"], ["sleep", 60]]}, "--set", "mode=ask")
    done = await run(bridge, argv, seconds=2)
    assert done.stopped is Fault.DEADLINE
    assert done.left_behind == ()
    assert leftovers.now() == []


@pytest.mark.anyio
async def test_who_holds_the_output_open_is_not_waited_for(bridge: Bridge, leftovers: Leftovers) -> None:
    done = await run(
        bridge, bridge.argv({"session/prompt": [["orphan", "60"], ["chunk", "half"], ["die", 6]]})
    )
    assert done.stopped is None
    assert done.returncode == 1
    assert b"session/prompt: the agent ended with exit code 6" in done.stderr
    assert leftovers.now() == []


@pytest.mark.anyio
async def test_a_cancelled_turn_leaves_nothing(bridge: Bridge, leftovers: Leftovers) -> None:
    argv = bridge.argv({"session/prompt": [["chunk", "half"], ["sleep", 60]]})
    with anyio.move_on_after(2):
        await run(bridge, argv)
    assert leftovers.now() == []


def test_the_agent_dies_with_a_bridge_that_is_killed(bridge: Bridge, leftovers: Leftovers) -> None:
    argv = bridge.argv({"session/prompt": [["deaf"]]})
    with subprocess.Popen(argv, stdin=subprocess.PIPE, env=bridge.env, cwd=bridge.folder) as process:
        assert process.stdin
        process.stdin.close()
        until = time.monotonic() + 20
        heard = Path(bridge.env["HEARD"])
        while not heard.exists() or "session/prompt" not in heard.read_text():
            assert time.monotonic() < until
            time.sleep(0.02)
        process.kill()
    assert leftovers.none_within(5)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "which program?"),
        (("client",), "-- is missing"),
        (("client", "--fork", "--"), "every option has one value"),
        (("client", "--nonsense", "x", "--"), "there is no option --nonsense"),
    ],
)
def test_a_command_line_that_is_none_is_refused(arguments: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        (*BRIDGE, *arguments),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2
    assert words in done.stderr


def test_without_setpriv_there_is_no_bridge(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **also: None if name == "setpriv" else which(name, **also)
    )
    with pytest.raises(FileNotFoundError, match="util-linux"):
        acp.Agent(sys.executable, [])
