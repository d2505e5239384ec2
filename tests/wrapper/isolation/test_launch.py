"""`wrapper.isolation.launch`: the command lines by which users are changed."""

from __future__ import annotations

import json

from wrapper.isolation import launch
from wrapper.isolation.launch import READ_ONLY, WRITABLE, User, reach_of

CLIENT = User(10002, 10003)
NO_CAPABILITIES = ("--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs")


def test_a_client_of_another_user_has_nothing_left_and_is_limited() -> None:
    argv = launch.other_user(CLIENT, prlimit="/p", setpriv="/s")
    assert argv[:6] == ("/s", "--reuid", "10002", "--regid", "10003", "--clear-groups")
    assert argv[6:9] == NO_CAPABILITIES
    assert argv[9:] == ("--pdeathsig", "KILL", "--", "/p", "--nproc=60:60", "--")


def test_a_client_of_our_own_user_inherits_no_capability_either() -> None:
    argv = launch.same_user(setpriv="/s")
    assert argv == ("/s", *NO_CAPABILITIES, "--pdeathsig", "KILL", "--")


def test_the_wrapper_keeps_the_two_capabilities_that_starting_a_client_takes() -> None:
    argv = launch.wrapper_for_good(User(10001, 10001), setpriv="/s")
    kept = "-all,+setuid,+setgid"
    assert {f"--inh-caps={kept}", f"--ambient-caps={kept}", f"--bounding-set={kept}"} < set(argv)
    assert argv[-2:] == ("--no-new-privs", "--")
    assert "--pdeathsig" not in argv


def test_killing_is_done_as_the_client_and_is_all_of_it_or_one_group() -> None:
    everything = launch.kill(CLIENT, 9, launch.EVERYTHING, setpriv="/s", shell="/sh")
    assert everything[:3] == ("/s", "--reuid", "10002")
    assert everything[-3:] == ("/sh", "-c", "kill -9 -1")
    assert launch.kill(CLIENT, 15, -77, setpriv="/s", shell="/sh")[-1] == "kill -15 -77"


def test_the_launcher_is_told_what_a_client_reaches() -> None:
    reach = reach_of(home="/h", cwd="/project", fenced=True, ours=("/opt/ours",))
    argv = launch.behind(reach, python="/python", launcher="/launcher.py", name="a-name")
    assert argv[:5] == ("/python", "-I", "-S", "/launcher.py", "a-name")
    assert argv[6] == "--"
    assert json.loads(argv[5]) == {
        "fenced": True,
        "cwd": "/project",
        "read": [*READ_ONLY, "/opt/ours"],
        "write": ["/h", "/project", *WRITABLE],
        "ports": [8888],
    }


def test_a_client_reaches_its_own_terminal_and_no_other() -> None:
    reach = reach_of(home="/h", cwd="/h/work", fenced=True, terminal="/dev/pts/7")
    assert reach.write == ("/h", *WRITABLE, "/dev/tty", "/dev/pts/7")
    assert not any(path.startswith(("/dev/pts", "/dev/tty")) for path in (*READ_ONLY, *WRITABLE))


def test_a_folder_below_the_clients_own_is_not_opened_for_itself() -> None:
    """The client could put a link there, and would be let in wherever it leads."""
    for cwd in ("/h", "/h/work"):
        assert reach_of(home="/h", cwd=cwd, fenced=True).write == ("/h", *WRITABLE)
    assert "/home" in reach_of(home="/h", cwd="/home", fenced=True).write


def test_nothing_that_is_the_wrappers_is_on_the_list() -> None:
    listed = (*READ_ONLY, *WRITABLE)
    assert not [path for path in listed if path in ("/", "/etc", "/proc", "/var", "/run", "/home", "/root")]
