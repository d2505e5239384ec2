"""The probe in the real image: green with every layer, and every one of its rows red without some layer.

A row that no missing layer turns red would prove nothing: without any layer and as root, every single one is.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docker_engine import ROOT as REPOSITORY
from docker_engine import docker, need_engine
from edge_kit import Council
from seat_containers import BASE, Town, llm_image, seat_image, surprises, town, untried

from wrapper.isolation.attempts import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(900)]

BARE = """\
#!/opt/consilium/bin/python -P
import sys
from wrapper import sandbox
from wrapper.isolation import verify
# What `subprocess.Popen(user=...)` does, and no more.
sandbox._prefix = lambda command, *_: (
    "/usr/bin/setpriv", "--reuid", "10002", "--regid", "10002", "--clear-groups", "--"
)
sys.exit(verify.main(sys.argv[2:]))
"""

ROOT = """\
#!/opt/consilium/bin/python -P
import pathlib, sys
from wrapper import sandbox
from wrapper.isolation import verify
verify._as_the_wrapper = lambda argv: None
sandbox._prefix = lambda *_: ("/bin/sh", "-c", 'exec 9</dev/null; CONSILIUM_KEY=x exec "$@"', "sh")
for name in ("client", "seat"):
    pathlib.Path("/var/lib/consilium", name).mkdir(exist_ok=True)
sys.exit(verify.main(sys.argv[2:]))
"""

NO_LANDLOCK = (
    '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_ERRNO", "errnoRet": 1, "names":'
    ' ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"]}]}'
)
"""A container in which the kernel answers as one without Landlock does."""

FENCED = {
    *("arbiter_by_port", "loopback_by_port", "loopback6", "direct_by_port"),
    *("dns", "udp", "udp_loopback"),
}
"""What the packet fence alone holds back."""

LANDLOCKED = {
    "proc_cmdline",
    "processes",
    "listen",
    "abstract_socket",
    "mounts",
    "netfilter_socket",
    "lasting_memory",
}
"""What the launcher alone holds back."""

BOTH = {"control", "multipath", "data", "admin", "loopback", "direct", "icmp"}
"""What either of the two holds back."""

LAUNCHED = {
    "setuid_root",
    "setuid_wrapper",
    "setgid_wrapper",
    "capabilities",
    "processes_without_end",
    "memory",
}

ENGINE = {"vsock", "io_uring", "unshare_user", "unshare_net"}
"""What depends on the engine's own filter, or on the kernel."""


class Place:
    """A town with an Arbiter, a proxy, and what a seat is started with there."""

    def __init__(self, town: Town, folder: Path) -> None:
        self.town = town
        self.folder = folder
        self.arbiter = town.peer("arbiter")
        self.reach = town.peer("reach")
        self.open_proxy = town.peer("open", generous=True)
        self.certs = town.volume("certs", Council(folder / "keys").alice.cert.parent, owner=10001)
        self.elsewhere = town.volume("elsewhere", owner=10002, mode="0777")
        for name, text in (("bare", BARE), ("root", ROOT)):
            (folder / name).mkdir()
            (folder / name / "consilium").write_text(text)
            (folder / name / "consilium").chmod(0o755)
        (folder / "no-landlock.json").write_text(NO_LANDLOCK)

    def options(self, *more: str, without: str = "", reach: str = "", **variables: str) -> list[str]:
        reach = reach or self.reach
        return self.town.options(
            *("-v", f"{self.certs}:/certs:ro", "-v", f"{self.elsewhere}:/srv/other-seat"),
            *more,
            without=without,
            CONSILIUM_REACH=f"{reach}:8888",
            HTTPS_PROXY=f"http://{reach}:8888",
            CONSILIUM_HOST=self.arbiter,
            **variables,
        )

    @property
    def command(self) -> list[str]:
        return [
            *("verify-isolation", "--json", "--certs", "/certs", "--state", "/var/lib/consilium/seat"),
            *("--direct", self.town.address(self.arbiter), "--egress-host", "api.example.org"),
        ]

    def driven_by(self, driver: str) -> tuple[str, ...]:
        """Put a driver of ours in the place of `consilium`."""
        path = "/drive:/opt/consilium/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return ("-v", f"{self.folder / driver}:/drive:ro", "-e", f"PATH={path}")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    need_engine()
    seat_image()
    with town() as held:
        yield Place(held, tmp_path_factory.mktemp("place"))


@pytest.mark.parametrize("image", [seat_image, llm_image], ids=["seat", "llm"])
def test_with_every_layer_everything_is_tried_and_nothing_surprises(place: Place, image: object) -> None:
    assert callable(image)
    done = place.town.run(image(), place.options(), *place.command)
    assert surprises(done) == set()
    assert untried(done) == set()


def test_without_the_packet_fence_its_rows_turn_red_and_no_other(place: Place) -> None:
    options = place.options(without="NET_ADMIN", CONSILIUM_ISOLATION="relaxed")
    done = place.town.run(seat_image(), options, *place.command)
    assert surprises(done) == FENCED


def test_without_landlock_its_rows_turn_red(place: Place) -> None:
    profile = place.folder / "no-landlock.json"
    done = place.town.run(seat_image(), place.options("--security-opt", f"seccomp={profile}"), *place.command)
    assert surprises(done) - ENGINE == LANDLOCKED


def test_a_client_that_merely_has_another_user_can_do_what_the_design_says(place: Place) -> None:
    options = place.options(*place.driven_by("bare"), without="NET_ADMIN", CONSILIUM_ISOLATION="relaxed")
    done = place.town.run(seat_image(), options, *place.command)
    assert surprises(done) - ENGINE == FENCED | LANDLOCKED | BOTH | LAUNCHED


def test_without_any_layer_and_as_root_every_row_turns_red(place: Place) -> None:
    options = [
        *("--init", "--network", place.town.token, "--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE"),
        *("--cap-add", "NET_ADMIN"),
        *("--security-opt", "seccomp=unconfined", "--entrypoint", "/drive/consilium"),
        *("--sysctl", "net.ipv6.conf.all.disable_ipv6=0", "--sysctl", "net.ipv6.conf.lo.disable_ipv6=0"),
        *("-v", f"{place.certs}:/certs:ro", "-v", f"{place.elsewhere}:/srv/other-seat"),
        *("-e", f"CONSILIUM_REACH={place.open_proxy}:8888", "-e", f"CONSILIUM_HOST={place.arbiter}"),
        *("-e", f"HTTPS_PROXY=http://{place.open_proxy}:8888", *place.driven_by("root")),
    ]
    done = place.town.run(seat_image(), options, *place.command)
    assert surprises(done) >= {row.name for row in ATTEMPTS if not row.allowed} - {"vsock", "io_uring"}


def test_an_expectation_of_success_turns_red_too(place: Place) -> None:
    options = place.options(reach=place.reach)
    options += ["-e", f"HTTPS_PROXY=http://{place.arbiter}:8888"]
    done = place.town.run(seat_image(), options, *place.command)
    assert surprises(done) == {"egress_allowed"}


# --- strict ------------------------------------------------------------------------------------------------


COUNCIL = "topic: Does it hold?\nparticipants: [{name: alpha}]\ncaps: {max_rounds: 1}\n"


def seat_command(place: Place) -> tuple[list[str], list[str]]:
    council = place.folder / "council.yaml"
    council.write_text(COUNCIL)
    return ["-v", f"{council}:/council.yaml:ro"], [
        *("seat", "--council", "/council.yaml", "--name", "alpha", "--certs", "/certs"),
        *("--state", "/var/lib/consilium/seat", "--model-url", f"http://{place.reach}:8888/v1"),
    ]


def test_a_strict_seat_does_not_start_without_net_admin(place: Place) -> None:
    mount, command = seat_command(place)
    done = place.town.run(llm_image(), place.options(*mount, without="NET_ADMIN"), *command)
    assert done.returncode == 2
    assert "the packet fence (nftables) cannot be built" in done.stderr
    assert "cap_add: [NET_ADMIN]" in done.stderr


def test_a_strict_seat_does_not_start_without_landlock(place: Place) -> None:
    mount, command = seat_command(place)
    profile = place.folder / "no-landlock.json"
    options = place.options(*mount, "--security-opt", f"seccomp={profile}")
    done = place.town.run(llm_image(), options, *command)
    assert done.returncode == 2
    assert "isolation: strict, and Landlock's version 4 (Linux 6.7) is needed" in done.stderr


def test_a_strict_seat_finds_out_by_itself_that_the_packet_fence_is_not_there(place: Place) -> None:
    mount, command = seat_command(place)
    options = place.options(*mount, without="NET_ADMIN", CONSILIUM_ISOLATION="relaxed")
    done = place.town.run(llm_image(), options, *command, "--isolation", "strict")
    assert done.returncode == 2
    assert "the packet fence (nftables) does not hold: the client could" in done.stderr


def test_a_name_that_does_not_resolve_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    mount, command = seat_command(place)
    done = place.town.run(llm_image(), place.options(*mount, reach="nobody.invalid"), *command)
    assert done.returncode == 2
    assert "CONSILIUM_REACH: nobody.invalid does not resolve" in done.stderr


def size(image: str) -> int:
    return int(docker("image", "inspect", "-f", "{{.Size}}", image).stdout)


def test_the_images_are_small(place: Place) -> None:
    assert size(llm_image()) - size(BASE) < 130_000_000
    assert size(seat_image()) - size(BASE) < 40_000_000


COMPOSE = """\
name: {name}
services:
  alpha:
    image: {image}
    init: true
    command: [seat]
    environment: {{ CONSILIUM_REACH: "{reach}:8888", CONSILIUM_HOST: "{arbiter}", PATH: "{path}" }}
    read_only: true
    cap_drop: [ALL]
    cap_add: [SETUID, SETGID, SETPCAP, NET_ADMIN, CHOWN, KILL]
    security_opt: ["no-new-privileges:true"]
    tmpfs: ["/tmp:rw,nosuid,nodev,noexec,size=16m"]
    volumes: ["{drive}:/drive:ro"]
    networks: [town]
    healthcheck: {{ test: [CMD, "true"], interval: 1s }}
networks:
  town: {{ name: {name}, external: true }}
"""

WAITING = (
    "#!/bin/sh\nexport PATH=/opt/consilium/bin:/usr/bin\n[ $1 = seat ] && exec sleep 600\nexec consilium $@\n"
)


def test_from_the_host_a_seat_is_named_by_its_service(place: Place, tmp_path: Path) -> None:
    drive = tmp_path / "drive"
    drive.mkdir()
    (drive / "consilium").write_text(WAITING)
    (drive / "consilium").chmod(0o755)
    words = {"name": place.town.token, "image": seat_image(), "reach": place.reach, "drive": drive}
    path = "/drive:/opt/consilium/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    (tmp_path / "compose.yaml").write_text(COMPOSE.format(**words, arbiter=place.arbiter, path=path))
    compose = ("compose", "-f", str(tmp_path / "compose.yaml"))
    try:
        docker(*compose, "up", "-d", "--wait")
        done = subprocess.run(
            [sys.executable, "-m", "consilium", "verify-isolation", "alpha", "--json"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        docker(*compose, "down", "-v", "-t", "1")
    assert surprises(done) == set()
    assert "control" not in untried(done)


def test_what_the_image_holds(place: Place) -> None:
    """Only the two rooms that a seat needs."""
    code = (
        "from importlib.util import find_spec as f; import wrapper.main; "
        "print([n for n in ('arbiter', 'pki', 'council', 'OpenSSL') if f(n)])"
    )
    done = place.town.run(
        seat_image(), ["--entrypoint", "/opt/consilium/bin/python", "--network", "none"], "-c", code
    )
    assert done.stdout.strip() == "[]", done.stderr
