"""`docker compose up`: a council in real containers, through a killed Arbiter, to its end, and once more."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import docker_engine
import pytest
from compose_project import SERVICES, VERSION, Project, build_images

from consilium.credentials import Credentials

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.docker, pytest.mark.timeout(1800)]

SEATS = ("sceptic", "pragmatist", "devils_advocate")

MORTAL = ("moderator", "arbiter", *SEATS)
"""They end with the debate."""

KILL = """
import os, signal
for pid in filter(str.isdigit, os.listdir("/proc")):
    words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
    if b"arbiter" in words and int(pid) != 1:
        os.kill(int(pid), signal.SIGKILL)
"""
"""The Arbiter alone: an engine that is told to kill a container does not start it again."""

PROBE = """
import json, socket
def reach(host, port):
    try:
        socket.create_connection((host, port), 3).close()
    except OSError as error:
        return type(error).__name__
    return "open"
places = [("arbiter", 9998), ("arbiter", 9999), ("arbiter", 9997), ("arbiter", 9100), ("arbiter-admin", 9997),
          ("prometheus", 9090), ("egress", 8888), ("egress", 9100), ("model", 8888), ("1.1.1.1", 443),
          ("example.com", 443)]
print(json.dumps({f"{host}:{port}": reach(host, port) for host, port in places}))
"""


@dataclass
class Story:
    """What was seen of one council, from the first `up` to the last `down`."""

    states: dict[str, str] = field(default_factory=dict)
    containers: dict[str, Any] = field(default_factory=dict)
    networks: dict[str, Any] = field(default_factory=dict)
    reached: dict[str, str] = field(default_factory=dict)
    fences: Any = None
    status: str = ""
    targets: dict[str, str] = field(default_factory=dict)
    console: int = 0
    killed_status: Any = None
    resumed: str = ""
    ended: dict[str, str] = field(default_factory=dict)
    told: str = ""
    prints: list[dict[str, bytes]] = field(default_factory=list)
    transcripts: list[dict[str, str]] = field(default_factory=list)
    owners: dict[str, int] = field(default_factory=dict)
    chats: list[str] = field(default_factory=list)
    shown: str = ""
    verified: str = ""
    second_states: dict[str, str] = field(default_factory=dict)
    second_status: Any = None
    stopped: dict[str, str] = field(default_factory=dict)


def fingerprints(project: Project) -> dict[str, bytes]:
    names = ("arbiter", "operator", *SEATS)
    return {name: Credentials.load(project.folder / "certs" / name).fingerprint() for name in names}


def chat(project: Project) -> str:
    """The inode of the client's chat in a seat's volume: the same file, or another."""
    return project.in_seat(
        "import os; os.setgroups([]); os.setgid(10101); os.setuid(10101)\n"
        "print(os.stat('/var/lib/consilium/client/logs.db').st_ino)"
    )


def healthy(project: Project) -> bool:
    states = project.states()
    return all(states.get(service) == "healthy" for service in SERVICES)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    docker_engine.need_engine()
    build_images()
    project = Project.create(tmp_path_factory.mktemp("council"))
    seen = Story()
    try:
        _first_debate(project, seen)
        _second_debate(project, seen)
        yield seen
    finally:
        project.clear()


def _first_debate(project: Project, seen: Story) -> None:
    project("up", "-d", "--no-build", timeout=600)
    project.until(lambda: healthy(project))
    project.until(lambda: _pause(project))  # on a quick machine it would be over before it is looked at
    seen.states, seen.containers = project.states(), project.containers()
    names = docker_engine.docker("network", "ls", "-q", "-f", f"name={project.name}_").stdout.split()
    networks = json.loads(docker_engine.docker("network", "inspect", *names).stdout)
    seen.networks = {each["Labels"]["com.docker.compose.network"]: each for each in networks}
    seen.status = project.operator("status")
    seen.reached = json.loads(project.in_seat(PROBE))
    fences = project("exec", "-T", "sceptic", "consilium", "verify-isolation", "--json", check=False)
    seen.fences = json.loads(fences.stdout)
    project.port("arbiter", 9998)
    project.port("arbiter", 9999)
    prometheus = project.port("prometheus", 9090)
    seen.targets = project.until(lambda: _targets(prometheus))
    with urllib.request.urlopen(f"http://{prometheus}/consoles/index.html", timeout=30) as page:
        seen.console = page.status
    certs = project.folder / "certs"
    seen.owners = {path.name: path.stat().st_uid for path in certs.iterdir() if path.is_dir()}
    seen.prints.append(fingerprints(project))
    project.operator("resume")
    project.until(lambda: (project.status() or {}).get("turn_counter", 0) >= 2)
    project("exec", "-T", "arbiter", "python", "-c", KILL, check=False)  # its own container goes with it
    seen.killed_status = project.until(lambda: _paused_and_complete(project))
    seen.resumed = project.operator("resume")
    seen.chats.append(chat(project))
    project.until(lambda: _all_exited(project), seconds=900)
    seen.ended, seen.told = project.states(), project.logs("moderator")
    seen.transcripts.append(project.transcripts())
    (name,) = seen.transcripts[0]
    seen.shown = project("run", "--rm", "-T", "transcript", "show", name).stdout
    seen.verified = project("run", "--rm", "-T", "transcript", "verify", name).stdout


def _second_debate(project: Project, seen: Story) -> None:
    project("down", "-t", "2")
    project("up", "-d", "--no-build", timeout=600)
    project.until(lambda: healthy(project))
    seen.second_states = project.states()
    seen.second_status = project.status()
    seen.prints.append(fingerprints(project))
    seen.transcripts.append(project.transcripts())
    seen.chats.append(chat(project))
    project("stop", "-t", "30", *SEATS)
    seen.stopped = project.states()


def _targets(address: str) -> dict[str, str] | None:
    """Job to its health, once no target is unknown any more."""
    with urllib.request.urlopen(f"http://{address}/api/v1/targets", timeout=30) as page:
        found = json.load(page)["data"]["activeTargets"]
    health = {target["labels"]["job"]: target["health"] for target in found}
    return health if found and "unknown" not in health.values() else None


def _pause(project: Project) -> bool:
    """Pause the debate; whether that was done. It is refused until the debate runs."""
    return project("run", "--rm", "-T", "operator", "pause", check=False).returncode == 0


def _all_exited(project: Project) -> bool:
    states = project.states()
    return all(states[service].startswith("exited") for service in MORTAL)


def _paused_and_complete(project: Project) -> Any:
    """STATUS, once the debate is paused and every seat is back."""
    status = project.status()
    if status is None or status["debate_state"] != "PAUSED":
        return None
    return status if all(seat["connected"] for seat in status["seats"]) else None


# --- while it debates --------------------------------------------------------------------------------------


def test_everything_is_healthy(story: Story) -> None:
    assert {service: story.states[service] for service in SERVICES} == dict.fromkeys(SERVICES, "healthy")
    assert story.states["pki"] == "exited 0"


def test_the_operator_is_one_command_away(story: Story) -> None:
    assert "Should children learn to write by hand" in story.status
    for seat in SEATS:
        assert f"{seat}_" in story.status


def test_a_seat_reaches_the_doors_the_model_and_the_proxy_and_nothing_else(story: Story) -> None:
    open_places = {place for place, said in story.reached.items() if said == "open"}
    assert open_places == {"arbiter:9998", "arbiter:9999", "egress:8888", "model:8888"}


def test_the_fences_round_a_client_stand_in_this_very_service(story: Story) -> None:
    surprises = [attempt for attempt in story.fences["attempts"] if attempt.get("surprise")]
    assert story.fences["ok"], surprises
    untried = {
        attempt["attempt"] for attempt in story.fences["attempts"] if attempt["outcome"] == "not tried"
    }
    # The embedded client needs no host outside, and an engine may go without IPv6.
    assert untried <= {"egress_allowed", "loopback6"}


def test_what_is_published_is_for_this_machine_alone(story: Story) -> None:
    for service, container in story.containers.items():
        bindings = container["NetworkSettings"]["Ports"] or {}
        addresses = {each["HostIp"] for found in bindings.values() for each in found or ()}
        assert addresses <= {"127.0.0.1"}, service
    published = {service for service, c in story.containers.items() if c["HostConfig"]["PortBindings"]}
    assert published == {"arbiter", "prometheus"}


def test_networks_lead_where_they_should(story: Story) -> None:
    internal = {name for name, network in story.networks.items() if network["Internal"]}
    assert internal == {"council", "egress", "operator"}
    plain = {
        name
        for name, network in story.networks.items()
        if network["Options"].get("com.docker.network.bridge.enable_ip_masquerade") != "false"
    }
    assert plain - internal == {"wan"}
    on = {service: set(c["NetworkSettings"]["Networks"]) for service, c in story.containers.items()}
    project = next(iter(story.networks.values()))["Name"].rsplit("_", 1)[0]
    assert {service for service, names in on.items() if f"{project}_wan" in names} == {"egress"}
    seats = {frozenset(on[seat]) for seat in SEATS}
    assert seats == {frozenset({f"{project}_council", f"{project}_egress"})}
    assert on["moderator"] == {f"{project}_operator"}


NEEDED = {
    "pki": {"CHOWN", "DAC_OVERRIDE", "FOWNER"},
    "seat": {"SETUID", "SETGID", "SETPCAP", "NET_ADMIN", "CHOWN", "KILL"},
}
"""What may not be taken from a service for it to work."""


def test_every_container_is_held_as_tight_as_it_can_be(story: Story) -> None:
    for service, container in story.containers.items():
        how = container["HostConfig"]
        assert how["ReadonlyRootfs"], service
        assert not how["Privileged"], service
        assert how["CapDrop"] == ["ALL"], service
        added = {name.removeprefix("CAP_") for name in how["CapAdd"] or ()}
        assert added == NEEDED.get("seat" if service in SEATS else service, set()), service
        assert "no-new-privileges:true" in how["SecurityOpt"], service
        assert not any("seccomp" in option for option in how["SecurityOpt"]), service
        assert 0 < how["PidsLimit"] <= 200, service
        assert 0 < how["Memory"] <= 2 * 2**30, service
        assert how["Init"], service
        assert how["LogConfig"]["Config"]["max-size"], service
        assert not any("docker.sock" in mount["Source"] for mount in container["Mounts"]), service
        root = container["Config"]["User"] in ("", "0", "0:0", "root")
        assert root == (service in ("pki", *SEATS)), service


def test_prometheus_sees_everybody_and_serves_its_pages(story: Story) -> None:
    assert set(story.targets.values()) == {"up"}
    assert {"consilium-arbiter", "consilium-egress"} <= set(story.targets)
    assert story.console == 200


# --- a killed Arbiter, and the end -------------------------------------------------------------------------


def test_a_killed_arbiter_comes_back_and_waits_for_its_operator(story: Story) -> None:
    assert story.killed_status["reason"] == "arbiter_restarted"
    assert story.resumed == "The debate goes on.\n"
    assert "waits for its operator" in " ".join(story.told.split())
    assert "docker compose run --rm operator resume" in story.told


def test_the_debate_ends_and_everybody_with_it(story: Story) -> None:
    for service in MORTAL:
        assert story.ended[service] == "exited 0", service
    told = " ".join(story.told.split())
    for part in (
        "── OPENING",
        "── CLOSING",
        "The debate is finished after",
        "the planned rounds are complete",
    ):
        assert part in told
    assert story.verified
    assert "CLOSING" in story.shown


# --- what stays --------------------------------------------------------------------------------------------


def test_certificates_transcripts_and_chats_survive_down(story: Story) -> None:
    first, second = story.prints
    assert first == second
    before, after = story.transcripts
    assert before.items() <= after.items()
    assert story.chats[0] == story.chats[1]


def test_a_second_up_holds_another_debate(story: Story) -> None:
    before, after = story.transcripts
    assert len(after) == len(before) + 1
    assert story.second_status["debate_state"] in ("WAITING_QUORUM", "READY", "RUNNING")
    assert all(story.second_states[service] == "healthy" for service in SERVICES)


def test_a_seat_that_is_stopped_takes_its_leave(story: Story) -> None:
    for seat in SEATS:
        assert story.stopped[seat] == "exited 0", seat


def test_certificates_belong_to_the_containers_that_use_them(story: Story) -> None:
    wrappers = dict.fromkeys(SEATS, 10001)
    assert story.owners == {"ca": 0, "arbiter": 10000, "moderator": 10004, "operator": 10004} | wrappers


def test_the_images_are_those_that_were_built(story: Story) -> None:
    used = {c["Config"]["Image"] for service, c in story.containers.items() if service != "prometheus"}
    assert {image.rpartition(":")[2] for image in used} == {VERSION}
