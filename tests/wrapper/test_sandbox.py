"""`wrapper.sandbox`: a client that does anything at all, and nothing of it that is left."""

from __future__ import annotations

import ast
import errno
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
import pytest
from leftovers import Leftovers

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.exchange import STDERR_EDGE_BYTES, Edges
from wrapper.isolation import launcher
from wrapper.isolation.confinement import Confinement, OtherUser
from wrapper.isolation.launch import User
from wrapper.remains import RUN_VARIABLE, alive, alive_of
from wrapper.sandbox import Bounds, Command, Completed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Shell = Callable[..., Command]

pytestmark = pytest.mark.anyio

ROOM = Path(sandbox.__file__).parent
SOON = Bounds(overall=20)
DEAF = "trap '' TERM;"


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Fail the test that leaves a process."""
    seen = Leftovers()
    yield seen
    assert seen.now() == []


@pytest.fixture
def shell(leftovers: Leftovers, tmp_path: Path) -> Shell:
    """Make a command of a shell script."""

    def make(script: str, stdin: bytes = b"", **variables: str) -> Command:
        env = {**leftovers.env, **variables}
        return Command(argv=("sh", "-c", script), env=env, cwd=tmp_path, stdin=stdin)

    return make


def python(code: str, like: Command) -> Command:
    return Command(argv=(sys.executable, "-c", code), env=like.env, cwd=like.cwd, stdin=like.stdin)


def state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "gone"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill after a moment what does not end on SIGTERM."""
    monkeypatch.setattr(sandbox, "GRACE_SECONDS", 0.1)


# --- a run that goes well ----------------------------------------------------------------------------


async def test_a_client_reads_its_prompt_from_standard_input_and_its_answer_comes_back(shell: Shell) -> None:
    done = await sandbox.run(shell("cat; echo trouble >&2; exit 3", b"what do you think?"), SOON)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"what do you think?", b"trouble\n")
    assert (done.stopped, done.left_behind) == (None, ())
    assert 0 < done.seconds < 10


async def test_a_prompt_of_a_megabyte_and_an_answer_as_long_do_not_wait_for_each_other(shell: Shell) -> None:
    prompt = os.urandom(1024 * 1024)
    assert (await sandbox.run(shell("cat", prompt), SOON)).stdout == prompt


async def test_a_client_that_does_not_read_its_prompt_may_still_answer(shell: Shell) -> None:
    done = await sandbox.run(shell("echo never mind", b"x" * 1024 * 1024), SOON)
    assert (done.returncode, done.stdout) == (0, b"never mind\n")


async def test_a_client_that_closes_its_input_early_may_still_answer(shell: Shell) -> None:
    done = await sandbox.run(shell("exec <&-; sleep 0.2; echo done", b"x" * 1024 * 1024), SOON)
    assert (done.returncode, done.stdout) == (0, b"done\n")


async def test_a_client_without_a_prompt_finds_the_end_of_its_input(shell: Shell) -> None:
    assert (await sandbox.run(shell("cat; echo over"), SOON)).stdout == b"over\n"


async def test_a_client_that_dies_of_a_signal_says_which(shell: Shell) -> None:
    assert (await sandbox.run(shell("kill -SEGV $$"), SOON)).returncode == -signal.SIGSEGV


async def test_the_event_loop_goes_on_while_a_client_works(shell: Shell) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await sandbox.run(shell("sleep 0.5"), SOON)
        group.cancel_scope.cancel()
    assert ticks > 10


async def test_two_clients_run_at_the_same_time_and_keep_apart(shell: Shell) -> None:
    done: dict[str, bytes] = {}

    async def ask(word: str) -> None:
        done[word] = (
            await sandbox.run(shell("read w; sleep 0.2; echo $w", f"{word}\n".encode()), SOON)
        ).stdout

    async with anyio.create_task_group() as group:
        group.start_soon(ask, "one")
        group.start_soon(ask, "two")
    assert done == {"one": b"one\n", "two": b"two\n"}


# --- what a client gets of us ------------------------------------------------------------------------


async def test_the_environment_is_what_was_given_and_nothing_of_ours(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSILIUM_TOKEN", "secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    told = (await sandbox.run(shell("env -0", TERM="dumb"), SOON)).stdout.decode()
    names = {line.partition("=")[0] for line in told.split("\0") if line}
    assert names - {"PWD", "SHLVL", "OLDPWD", "_"} == {"PATH", "LANG", "TERM", "TEST_TOKEN", RUN_VARIABLE}


def test_a_variable_of_ours_is_refused_by_name_and_its_value_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="CONSILIUM_KEY") as refused:
        Command(argv=("true",), env={"CONSILIUM_KEY": "s3cret"}, cwd=tmp_path)
    assert "s3cret" not in str(refused.value)


def test_neither_environment_nor_prompt_shows_when_a_command_is_printed(tmp_path: Path) -> None:
    shown = repr(Command(argv=("true",), env={"API_KEY": "s3cret"}, cwd=tmp_path, stdin=b"s3cret"))
    assert "s3cret" not in shown


async def test_a_client_has_no_terminal_its_own_session_and_only_three_descriptors(shell: Shell) -> None:
    with open("/dev/null") as ours:  # noqa: ASYNC230, PTH123 - a descriptor that must not be inherited
        os.set_inheritable(ours.fileno(), True)
        code = (
            "import os, json\n"
            "try: tty = os.open('/dev/tty', os.O_RDWR)\n"
            "except OSError: tty = None\n"
            "fds = [int(fd) for fd in os.listdir('/proc/self/fd')]\n"
            "open_ = [fd for fd in fds if os.path.exists(f'/proc/self/fd/{fd}')]\n"
            "print(json.dumps([tty, os.getsid(0) == os.getpid(), sorted(open_), os.getcwd()]))\n"
        )
        like = shell("")
        done = await sandbox.run(python(code, like), SOON)
    assert json.loads(done.stdout) == [None, True, [0, 1, 2], str(like.cwd)]


async def test_a_client_gains_no_privileges(shell: Shell) -> None:
    done = await sandbox.run(shell("grep NoNewPrivs /proc/self/status"), SOON)
    assert done.stdout.split() == [b"NoNewPrivs:", b"1"]


# --- a client with a user of its own; in its container it is tried for real (tests/wrapper/isolation) -------

OTHERS = Confinement(client=OtherUser(user=User(4242, 4343), home=Path("/srv/client")))


def test_a_client_of_our_own_user_inherits_none_of_our_capabilities(shell: Shell) -> None:
    prefix = sandbox._prefix(shell("true"), None, "")
    assert {"--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"} < set(prefix)
    assert "--reuid" not in prefix


def test_a_client_of_another_user_goes_through_every_gate(shell: Shell) -> None:
    prefix = sandbox._prefix(replace(shell("true"), confinement=OTHERS), "/dev/pts/9", "a-name")
    words = [Path(word).name for word in prefix]
    assert words[0] == "setpriv", "it bears a name of its own, and the first alone can be given one"
    assert words.index("prlimit") < words.index("launcher.py")
    assert prefix[prefix.index(launcher.__file__) + 1] == "a-name"
    assert prefix[prefix.index("--reuid") + 1 :][:3] == ("4242", "--regid", "4343")
    reach = json.loads(prefix[-2])
    assert (reach["fenced"], reach["cwd"]) == (True, str(shell("true").cwd))
    assert {"/srv/client", "/dev/tty", "/dev/pts/9"} < set(reach["write"])
    assert str(Path(sandbox.__file__).parent) in reach["read"]


@pytest.mark.parametrize(("alone", "target"), [(True, "-1"), (False, "-77")])
def test_what_is_left_of_another_user_is_ended_as_that_user(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, alone: bool, target: str
) -> None:
    ran: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(subprocess, "run", lambda argv, **options: ran.append((argv, options)))
    monkeypatch.setattr(sandbox, "send_signal", lambda _processes, _number: None)
    command = replace(shell("true"), confinement=OTHERS, alone=alone)

    class Process:
        pid = 77

    sandbox._signal((), signal.SIGKILL, cast("subprocess.Popen[bytes]", Process()), command)
    assert ran == []  # nothing is left
    sandbox._signal((78,), signal.SIGKILL, cast("subprocess.Popen[bytes]", Process()), command)
    ((argv, options),) = ran
    assert argv[-1] == f"kill -9 {target}"
    assert "4242" in argv
    assert options["env"] == {}


def test_whoever_runs_as_a_user_is_found_in_whatever_session(shell: Shell) -> None:
    assert os.getpid() in alive_of(os.getuid())
    assert alive_of(4242) == ()


async def test_a_thread_can_run_a_client_too(shell: Shell) -> None:
    done = await anyio.to_thread.run_sync(sandbox.run_blocking, shell("cat", b"hello"), SOON)
    assert (done.returncode, done.stdout) == (0, b"hello")
    with pytest.raises(AdapterFault, match="no-such-client"):
        sandbox.run_blocking(replace(shell(""), argv=("no-such-client",)), SOON)


# --- clients that cannot be started ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("no-such-client",), "no-such-client is not installed"),
        (("sh", "x" * 200_000), "Argument list too long"),
        (("sh", "a\0b"), "null byte"),
    ],
)
async def test_a_client_that_cannot_be_started_was_not_sent_the_prompt(
    shell: Shell, argv: tuple[str, ...], words: str
) -> None:
    like = shell("")
    with pytest.raises(AdapterFault, match=words) as fault:
        await sandbox.run(Command(argv=argv, env=like.env, cwd=like.cwd), SOON)
    assert (fault.value.fault, fault.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)


async def test_a_client_whose_interpreter_is_missing_cannot_be_started(shell: Shell) -> None:
    like = shell("")
    script = like.cwd / "client"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o700)
    with pytest.raises(AdapterFault, match="cannot be run: failed to execute") as fault:
        await sandbox.run(Command(argv=(str(script),), env=like.env, cwd=like.cwd), SOON)
    assert (fault.value.fault, fault.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)


async def test_a_client_that_exits_like_a_failed_start_is_not_taken_for_one(shell: Shell) -> None:
    assert (await sandbox.run(shell("echo oops >&2; exit 127"), SOON)).returncode == 127


@pytest.mark.parametrize(
    "who", ["setpriv", "prlimit", "launcher", "bridge", "$0", "$(tr '\\0' ' ' <environ)"]
)
@pytest.mark.parametrize("code", [126, 127])
async def test_a_client_cannot_say_of_itself_that_it_was_not_started(
    shell: Shell, who: str, code: int
) -> None:
    script = f"cd /proc/self; printf '%s: failed to execute\\n' \"{who}\" >&2; exit {code}"
    assert (await sandbox.run(shell(script), SOON)).returncode == code


async def test_nothing_in_the_client_s_place_tells_who_started_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    made_up = secrets.token_hex

    def made(size: int) -> str:
        names.append(made_up(size))
        return names[-1]

    monkeypatch.setattr(secrets, "token_hex", made)
    seen = "cat /proc/self/environ /proc/self/cmdline /proc/self/comm /proc/$$/cmdline /proc/$$/comm"
    done = await sandbox.run(shell(seen), SOON)
    mark, starter = names
    assert mark.encode() in done.stdout
    assert starter.encode() not in done.stdout


async def test_a_bridge_says_that_its_client_could_not_be_started(shell: Shell) -> None:
    script = "echo 'bridge: agent is not installed' >&2; exit 127"
    with pytest.raises(AdapterFault, match=r"^agent is not installed$") as fault:
        await sandbox.run(replace(shell(script), bridged=True), SOON)
    assert (fault.value.fault, fault.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)


async def test_a_folder_that_is_gone_is_named(shell: Shell) -> None:
    like = shell("")
    with pytest.raises(AdapterFault, match="nowhere"):
        await sandbox.run(Command(argv=("true",), env=like.env, cwd=like.cwd / "nowhere"), SOON)


async def test_without_setpriv_nothing_runs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(AdapterFault, match="util-linux"):
        await sandbox.run(shell("true"), SOON)


# --- bounds ------------------------------------------------------------------------------------------


async def test_a_client_that_says_nothing_is_stopped_at_the_first_byte_deadline(shell: Shell) -> None:
    done = await sandbox.run(
        shell("echo warming up >&2; sleep 60"), Bounds(overall=20, first_byte=0.3, stall=9)
    )
    assert (done.stopped, done.stdout, done.stderr) == (Fault.FIRST_BYTE_TIMEOUT, b"", b"warming up\n")
    assert done.returncode == -signal.SIGTERM
    assert done.seconds < 5


async def test_a_client_that_falls_silent_is_stopped_at_the_stall_deadline(shell: Shell) -> None:
    done = await sandbox.run(shell("echo well; sleep 60"), Bounds(overall=20, first_byte=9, stall=0.3))
    assert (done.stopped, done.stdout) == (Fault.STALLED, b"well\n")


async def test_a_client_that_goes_on_talking_is_stopped_at_the_overall_deadline(shell: Shell) -> None:
    done = await sandbox.run(
        shell("while :; do echo and; sleep 0.05; done"), Bounds(overall=0.6, first_byte=9, stall=9)
    )
    assert done.stopped is Fault.DEADLINE
    assert done.stdout.startswith(b"and\n")


async def test_a_client_that_prints_at_the_end_is_not_hurried(shell: Shell) -> None:
    done = await sandbox.run(shell("sleep 0.5; echo there"), Bounds(overall=20))
    assert (done.stopped, done.stdout) == (None, b"there\n")


async def test_an_answer_without_end_is_cut_at_the_limit(shell: Shell) -> None:
    done = await sandbox.run(shell("yes"), Bounds(overall=20, output_bytes=100_000))
    assert (done.stopped, len(done.stdout)) == (Fault.ANSWER_TOO_LARGE, 100_000)
    assert done.seconds < 10


async def test_of_endless_errors_the_beginning_and_the_end_are_kept(shell: Shell) -> None:
    done = await sandbox.run(shell("echo first >&2; yes | head -c 3000000 >&2; echo last >&2"), SOON)
    assert done.stderr.startswith(b"first\ny\n")
    assert done.stderr.endswith(b"y\nlast\n")
    assert b"bytes left out]" in done.stderr
    assert len(done.stderr) < 3 * STDERR_EDGE_BYTES


def test_a_stream_that_fits_is_kept_whole_however_it_arrives() -> None:
    for size in (1, 3, 8, 100):
        edges = Edges(8)
        data = bytes(range(16))
        for start in range(0, len(data), size):
            edges.add(data[start : start + size])
        assert edges.value() == data
        edges.add(b"!!")
        assert edges.value() == data[:8] + b"\n[2 bytes left out]\n" + data[10:] + b"!!"


# --- nothing is left ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("impatient")
async def test_a_client_that_ignores_sigterm_is_killed(shell: Shell) -> None:
    done = await sandbox.run(shell(f"{DEAF} while :; do sleep 1; done"), Bounds(overall=0.5))
    assert (done.stopped, done.returncode) == (Fault.DEADLINE, -signal.SIGKILL)


async def test_a_client_that_is_asked_to_end_may_end_in_good_order(shell: Shell) -> None:
    like = shell("trap 'echo saved >saved; exit 5' TERM; echo up; while :; do sleep 0.05; done")
    done = await sandbox.run(like, Bounds(overall=20, first_byte=10, stall=0.3))
    assert done.returncode == 5
    assert (like.cwd / "saved").exists()


async def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_turn(shell: Shell) -> None:
    done = await sandbox.run(shell("sleep 60 & echo answer"), SOON)
    assert (done.returncode, done.stdout, done.stopped) == (0, b"answer\n", None)
    assert done.seconds < 5


@pytest.mark.usefixtures("impatient")
async def test_a_deaf_grandchild_of_a_client_that_ended_well_is_killed(shell: Shell) -> None:
    done = await sandbox.run(shell(f"(sh -c '{DEAF} while :; do sleep 1; done' &) ; echo answer"), SOON)
    assert (done.returncode, done.stdout, done.left_behind) == (0, b"answer\n", ())


async def test_a_grandchild_that_left_the_session_is_found_by_its_mark(
    shell: Shell, leftovers: Leftovers
) -> None:
    done = await sandbox.run(
        shell("setsid sleep 60 >/dev/null 2>&1 </dev/null & sleep 0.2; echo answer"), SOON
    )
    assert (done.stdout, done.left_behind) == (b"answer\n", ())
    assert leftovers.now() == []


async def test_a_grandchild_that_lost_its_mark_is_found_by_its_session(shell: Shell) -> None:
    like = shell("env -i sleep 60 >/dev/null 2>&1 </dev/null & echo $!; sleep 0.2")
    pid = int((await sandbox.run(like, SOON)).stdout)
    assert state_of(pid) in ("gone", "Z")  # a zombie, where nobody collects orphans


async def test_a_cancelled_turn_leaves_nothing_even_of_a_deaf_client(
    shell: Shell, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "GRACE_SECONDS", 0.1)
    done: Completed | None = None
    began = time.monotonic()
    with anyio.move_on_after(0.5) as scope:
        done = await sandbox.run(shell(f"{DEAF} while :; do sleep 1; done"), Bounds(overall=60))
    assert scope.cancelled_caught
    assert done is None
    assert time.monotonic() - began < 5
    assert leftovers.now() == []


async def test_a_turn_that_was_cancelled_before_it_began_starts_nothing(shell: Shell) -> None:
    command = shell("echo here >trace")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await sandbox.run(command, SOON)
    assert not (command.cwd / "trace").exists()


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
async def test_what_cannot_be_ended_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "GRACE_SECONDS", 0.05)
    monkeypatch.setattr(sandbox, "KILL_SECONDS", 0.05)
    monkeypatch.setattr(sandbox, "send_signal", lambda _processes, _number: None)
    done = await sandbox.run(shell("exec sleep 3"), Bounds(overall=0.2))
    assert done.returncode is None
    (stubborn,) = done.left_behind
    os.kill(stubborn, signal.SIGKILL)
    os.waitpid(stubborn, 0)  # noqa: ASYNC222 - it is dead


WRAPPER = """
import anyio, os, sys
from pathlib import Path
from wrapper.sandbox import Bounds, Command, run
argv = ("sh", "-c", "echo $$ >pid; exec sleep 60")
client = Command(argv=argv, env=dict(os.environ), cwd=Path(sys.argv[1]))
anyio.run(run, client, Bounds(overall=60))
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_does_not_outlive_its_wrapper(
    leftovers: Leftovers, tmp_path: Path, number: signal.Signals
) -> None:
    wrapper = subprocess.Popen([sys.executable, "-c", WRAPPER, str(tmp_path)], env=leftovers.env)
    until = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert len(leftovers.now()) == 2
    wrapper.send_signal(number)
    wrapper.wait(10)
    assert leftovers.none_within(5)


def test_a_process_that_is_not_ours_is_never_taken_for_one_of_a_run() -> None:
    assert alive(session=-1, mark="no such run") == ()


STARTERS = {
    "subprocess",
    "multiprocessing",
    "pty",
    "pexpect",
    "open_process",
    "run_process",
    "fork",
    "system",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "spawn",
    "pty_spawn",
    "popen_spawn",
}


THEIRS = {"sandbox": {"subprocess"}, "probe": {"fork"}, "acp": {"subprocess"}, "console": {"pexpect"}}
"""Two stand in a client's place, started by the sandbox: the probe forks there to change users, and a bridge
starts the client that it speaks with. The console takes of pexpect what reads a descriptor."""


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: path.stem)
def test_no_other_module_of_the_wrapper_can_start_a_process(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            statement.body.clear()
    used = set()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                used |= {name.name.partition(".")[0] for name in names}
            case ast.ImportFrom(module=str(module), names=names):
                used |= {module.partition(".")[0], *(name.name for name in names)}
            case ast.Attribute(attr=attribute):
                used.add(attribute)
    assert used & STARTERS == THEIRS.get(path.stem, set())


async def test_a_client_that_cannot_be_watched_is_ended_and_told_as_that(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    with pytest.raises(AdapterFault, match="started and cannot be watched: Too many open files") as raised:
        await sandbox.run(shell("sleep 600"), SOON)
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.INTERNAL, PromptSent.MAYBE)
