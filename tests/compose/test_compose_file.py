"""`compose.yaml` and its page, held against the programs and the council file. No engine is needed."""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from consilium.cli import COMMANDS
from consilium.settings import load_council
from council import builtin
from wrapper.adapters.presets import load_preset
from wrapper.isolation.launch import User

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = [name for name, service in SERVICES.items() if service["image"].startswith("consilium-")]
PAGE = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
SEATS = [seat.name for seat in builtin.council().participants]
CLIENTS = {seat.name: seat for seat in load_council(ROOT / "council.clients.yaml").participants}


def understood(words: list[str]) -> None:
    """Have the command's own parser read ``words``, which it may not refuse."""
    module = import_module(COMMANDS[words[0]][0].partition(":")[0])
    module.parser().parse_args(words[1:])


@pytest.mark.parametrize("name", OURS)
def test_every_service_s_command_is_one(name: str) -> None:
    service = SERVICES[name]
    words = [*service.get("entrypoint", ["consilium"]), *service["command"]]
    if words[-1] == "--help":  # `transcript` has to be told what to do
        words[-1:] = ["show", "x.jsonl"]
    understood(words[1:])


def test_there_is_a_service_a_certificate_and_a_volume_for_every_participant_of_the_council_file() -> None:
    council = load_council(ROOT / "council.yaml")
    assert [seat.name for seat in council.participants] == SEATS
    assert {name for name, service in SERVICES.items() if "consilium-llm" in service["image"]} == set(SEATS)
    for seat in SEATS:
        assert SERVICES[seat]["command"] == [f"--name={seat}"]
        assert f"./certs/{seat}:/etc/consilium/certs:ro" in SERVICES[seat]["volumes"]
        assert f"{seat}:/var/lib/consilium" in SERVICES[seat]["volumes"]
        assert seat in COMPOSE["volumes"]


def test_the_council_of_the_clients_is_in_force_as_soon_as_one_of_them_is_started() -> None:
    """Compose tells no container which profiles are on: a service of theirs puts their file in the place."""
    pki, clients = SERVICES["pki"], SERVICES["clients"]
    assert set(clients["profiles"]) == {seat.preset for seat in CLIENTS.values()}
    assert clients["command"] == pki["command"]
    assert [mount["source"] for service in (pki, clients) for mount in service["volumes"][-1:]] == [
        "${CONSILIUM_COUNCIL-./council.yaml}",
        "${CONSILIUM_COUNCIL-./council.clients.yaml}",
    ]
    assert clients["depends_on"] == {"pki": {"condition": "service_completed_successfully"}}
    for name, service in SERVICES.items():
        read = [
            mount
            for mount in service.get("volumes", [])
            if "target" in mount and "council" in mount["target"]
        ]
        if name not in ("pki", "clients") and read:
            assert {mount["source"] for mount in read} <= {"council", "./roles"}, name
    assert SERVICES["arbiter"]["depends_on"]["clients"]["required"] is False
    assert SERVICES["egress"]["depends_on"] == SERVICES["arbiter"]["depends_on"]


def test_every_preset_that_is_a_client_of_its_own_has_a_seat_under_its_profile() -> None:
    presets = {path.stem for path in (ROOT / "wrapper" / "presets").glob("*.toml")}
    # The embedded council's, a person, and a client that no registry has.
    assert {seat.preset for seat in CLIENTS.values()} == presets - {"llm", "human", "antigravity"}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_s_service_is_that_of_its_participant(name: str) -> None:
    service, seat, preset = SERVICES[name], CLIENTS[name], load_preset(CLIENTS[name].preset)
    assert service["profiles"] == [seat.preset]
    assert service["command"] == [f"--name={name}"]
    assert service["environment"]["CONSILIUM_SEAT"] == name
    assert service["networks"] == ["council", "egress"]
    assert f"./certs/{name}:/etc/consilium/certs:ro" in service["volumes"]
    assert f"{name}:/var/lib/consilium" in service["volumes"]
    assert name in COMPOSE["volumes"]
    made_of = service["build"]["args"]["CLIENT"]
    assert service["image"].startswith(f"consilium-{made_of}:")
    assert {"package.json", "package-lock.json", "install.sh"} <= {
        path.name for path in (ROOT / "images" / made_of).iterdir()
    }
    (secret,) = service["secrets"]
    assert preset.conformance is not None
    assert seat.env == (secret["target"],) == (preset.conformance.key,)
    assert COMPOSE["secrets"][secret["source"]]["file"].endswith("_API_KEY_FILE:-/dev/null}")


@pytest.mark.parametrize("name", CLIENTS)
def test_the_page_says_where_a_client_s_key_and_its_endpoint_are_named(name: str) -> None:
    service = SERVICES[name]
    file = re.findall(r"[A-Z_]+_FILE", COMPOSE["secrets"][service["secrets"][0]["source"]]["file"])[0]
    row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{CLIENTS[name].preset}` |"))
    assert f"`{file}`" in row
    told = re.findall(r"`([A-Z_]+_URL)`", row)[0]
    assert told in service["environment"] or told in str(service["environment"].values())


def test_whoever_was_started_is_waited_for_before_the_debate_begins() -> None:
    begin = SERVICES["begin"]
    assert set(begin["profiles"]) == {seat.preset for seat in CLIENTS.values()}
    once_it_is_seated = {"condition": "service_healthy", "required": False}
    assert begin["depends_on"] == dict.fromkeys(CLIENTS, once_it_is_seated)
    roster = load_council(ROOT / "council.clients.yaml").roster
    assert [seat.name for seat in roster.participants] == list(CLIENTS)
    assert roster.awaited == frozenset()
    assert not any(seat.required for seat in roster.participants)


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_hardened(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] <= 200
    assert service["mem_limit"]
    assert service["logging"]["options"]["max-size"]
    assert "privileged" not in service
    assert not any("docker.sock" in str(volume) for volume in service.get("volumes", ()))


def test_an_image_of_ours_is_built_and_never_pulled() -> None:
    ours = {name: service for name, service in SERVICES.items() if "build" in service}
    assert len(ours) >= 8
    assert {service["pull_policy"] for service in ours.values()} == {"never"}


def test_every_seat_s_client_has_a_user_of_its_own() -> None:
    """The kernel counts a user's processes over all containers: one seat could stop all others."""
    users = [
        service["environment"]["CONSILIUM_CLIENT_USER"]
        for service in SERVICES.values()
        if "consilium-seat" in str(service.get("entrypoint", ""))
    ]
    assert len(users) == len(set(users)) >= 3
    assert all(10101 <= User.parse(user).uid == User.parse(user).gid <= 10164 for user in users)


def test_a_file_that_is_missing_is_not_made_a_folder() -> None:
    for name, service in SERVICES.items():
        for volume in map(str, service.get("volumes", ())):
            assert not volume.startswith(("./council.yaml", "./roles")), name
    volumes = [each for service in SERVICES.values() for each in service.get("volumes", ())]
    mounts = [each for each in volumes if isinstance(each, dict) and each["type"] == "bind"]
    assert mounts
    assert all(each["bind"] == {"create_host_path": False} for each in mounts)


def test_what_is_published_is_for_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith(("127.0.0.1:", "${CONSILIUM_PUBLISH-127.0.0.1}:")) for port in ports)
    assert not any("9997" in port for port in ports)  # §15.2: never


def test_only_the_proxy_is_outside() -> None:
    inside = {name for name, network in COMPOSE["networks"].items() if network and network.get("internal")}
    assert inside == {"council", "egress", "operator"}
    assert [name for name, service in SERVICES.items() if "wan" in service.get("networks", ())] == ["egress"]
    for name in SEATS:
        assert SERVICES[name]["networks"] == ["council", "egress"]
        assert SERVICES[name]["dns"] == ["127.0.0.1"]


def commands(kind: str) -> list[str]:
    """The command lines of the page's blocks of one kind, with their continuations."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    texts = [re.sub(r"\\\n\s*", "", text) for found, text in blocks if found == kind]
    return [line for text in texts for line in text.splitlines()]


UNITS = [line.partition("=")[2] for line in commands("ini") if line.startswith("ExecStart=")]
TYPED = [
    part.strip()
    for line in commands("")
    if line.startswith(("$ ", "# "))
    for part in line[2:].partition("    (")[0].split("&&")
]


@pytest.mark.parametrize("line", UNITS)
def test_the_page_s_units_start_commands_that_there_are(line: str) -> None:
    program, *words = shlex.split(line.replace("%i", "ada"))
    assert program == "/opt/consilium/bin/consilium"
    understood(words)


@pytest.mark.parametrize("line", [line for line in TYPED if line.startswith("consilium ")])
def test_the_page_s_commands_are_understood(line: str) -> None:
    understood(shlex.split(line)[1:])


@pytest.mark.parametrize("line", [line for line in TYPED if line.startswith("docker compose run --rm ")])
def test_the_page_s_one_off_services_are_understood(line: str) -> None:
    _, _, _, _, name, *words = shlex.split(re.split(r"\s{4,}", line)[0])
    words = words or SERVICES[name]["command"]
    if words == ["login"]:  # tests/test_seat_entry.py tells what the entry point makes of it
        assert SERVICES[name]["environment"]["CONSILIUM_SEAT"] == name
        return
    if name == "transcript" and words[0] not in ("show", "verify"):
        words = ["show", *words]  # `consilium transcript FILE` is short for it
    understood([*SERVICES[name].get("entrypoint", ["consilium"])[1:], *words])


def test_the_page_has_such_lines_at_all() -> None:
    assert len(UNITS) == 2
    assert len(TYPED) > 20
