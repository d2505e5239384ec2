"""What reaches the provider in each harness profile, and what of a prompt a real client takes for itself."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from clients.kit import SYSTEM, Seats
from wrapper.adapters import templates
from wrapper.adapters.presets import load_preset

if TYPE_CHECKING:
    from pathlib import Path

    from council.conformance.provider.stub import Stub
    from wrapper.adapters.native import NativeAdapter
    from wrapper.adapters.parts import ProfileName

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(300)]

MARKS = {"user": "MARK-OF-THE-USER", "project": "MARK-OF-THE-PROJECT"}


def furnish(client: str, person: Path, project: Path, ran: Path) -> None:
    """A person and a project that have set up everything that the client could pick up."""
    for whose, folder in (("user", person), ("project", project)):
        tried = load_preset(client).conformance
        assert tried is not None
        told = {"mark": f"{MARKS[whose]}-SET-UP", "made": str(ran / f"made-{whose}")}
        for name, content in tried.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(templates.fill(content, told))
    (project / "note.txt").write_text("MARK-OF-A-NOTE\n")


def made_in(ran: Path) -> list[str]:
    """What hooks and servers left there that ran."""
    return [path.name for path in ran.glob("made-*")]


async def test_a_restricted_client_has_no_tools_and_nothing_of_anybodys_configuration(
    seats: Seats, stub: Stub, tmp_path: Path
) -> None:
    work = tmp_path / "seat" / "work"
    work.mkdir(parents=True)
    (tmp_path / ".git").mkdir()  # a seat's state may be anywhere, in somebody's project too
    for project in (tmp_path,) if seats.client.takes_its_folder else (tmp_path, work):
        furnish(seats.client.preset, tmp_path / "person", project, tmp_path)
    if seats.client.ignores is not None:
        shutil.copytree(tmp_path / "person" / seats.client.ignores, tmp_path / "seat" / "home")
    adapter = seats.make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("first")
    await adapter.send_turn("second")
    await adapter.close()
    for request, turn in zip(stub.requests, stub.turns, strict=True):
        assert turn.tools == ()
        assert SYSTEM in turn.system
        assert "MARK-OF" not in str(request.body)
    assert not made_in(tmp_path)


async def test_a_tool_that_the_model_makes_up_is_not_run(seats: Seats, stub: Stub, tmp_path: Path) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    tool, key = seats.client.shell_tool
    told = await adapter.send_turn(f'<<tool {tool} {{"{key}": "touch {tmp_path}/made"}}>>')
    await adapter.close()
    assert told.text.startswith("I have seen 1 user messages")
    assert not (tmp_path / "made").exists()
    assert stub.turns[-1].tool_results, "the model was told that there is no such tool"


async def test_a_native_client_works_in_the_project_with_what_its_person_has_set_up(
    seats: Seats, stub: Stub, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    furnish(seats.client.preset, tmp_path / "person", project, tmp_path)
    adapter = seats.make(profile="native", cwd=project)
    await adapter.open(SYSTEM)
    await adapter.send_turn("first")
    assert (await adapter.send_turn("second")).text == "I have seen 2 user messages; last: second"
    await adapter.close()
    for request, turn in zip(stub.requests, stub.turns, strict=True):
        body = str(request.body)
        assert len(turn.tools) > 5
        assert SYSTEM in body
        assert MARKS["user"] in body
        assert MARKS["project"] in body


async def test_what_a_native_client_may_not_do_is_not_done_and_told(
    seats: Seats, stub: Stub, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    adapter = seats.make(profile="native", cwd=project)
    await adapter.open(SYSTEM)
    tool, key = seats.client.shell_tool
    told = await adapter.send_turn(f'<<tool {tool} {{"{key}": "touch {tmp_path}/made"}}>>')
    await adapter.close()
    assert told.text.startswith("I have seen 1 user messages")
    assert not (tmp_path / "made").exists()
    assert stub.turns[-1].tool_results
    if seats.client.refusal:
        assert len(told.refused) == 1
        assert seats.client.refusal.format(made=tmp_path / "made") in told.refused[0]
        assert told.refused[0].isprintable()


INJECTIONS = [
    "@/etc/passwd",
    "look at @/etc/passwd and @note.txt",
    "/help",
    "/cost",
    "/clear",
    "/nosuchcommand x",
    "!ls",
    "#x",
    "$skill-user",
    "use $skill-user now",
    "-p foo",
    "--help",
    "exit",
    "\\@note.txt",
    "[[CONSILIUM CONTRIBUTION]]",
]


@pytest.mark.parametrize("profile", ["restricted", "native"])
async def test_a_prompt_is_text_whatever_it_looks_like(
    seats: Seats, stub: Stub, tmp_path: Path, profile: ProfileName
) -> None:
    project = tmp_path / "project" if profile == "native" else tmp_path / "seat" / "work"
    project.mkdir(parents=True)
    if profile == "native" or not seats.client.takes_its_folder:
        (project / "note.txt").write_text("MARK-OF-A-NOTE\n")
    adapter = seats.make(profile=profile, cwd=project if profile == "native" else None)
    await adapter.open(SYSTEM)
    for injection in INJECTIONS:
        await adapter.send_turn(injection)
        said = stub.turns[-1].prompts[-1].strip().removeprefix(SYSTEM)  # where that has no other place
        written = injection
        for piece, instead in adapter._preset.profiles[profile].replace.items():
            written = written.replace(piece, instead)
        assert said.strip() == written
        sent = str(stub.requests[-1].body)
        assert "root:x:" not in sent
        assert "MARK-OF-A-NOTE" not in sent
    await adapter.close()


async def test_a_megabyte_reaches_the_provider_whole(seat: NativeAdapter, stub: Stub) -> None:
    prompt = "".join(f"{line:07d} \u00e9\n" for line in range(95_000))
    assert 1_000_000 < len(prompt.encode()) < 1_048_000
    await seat.send_turn(prompt)
    assert stub.turns[-1].prompts[-1].strip() == prompt.strip()


async def test_nothing_of_the_wrapper_reaches_the_provider(seats: Seats, stub: Stub) -> None:
    adapter = seats.make(env={"CONSILIUM_KEY": "never", "OTHER_SECRET": "never-this"})
    await adapter.open(SYSTEM)
    await adapter.send_turn("hello")
    await adapter.close()
    assert "never" not in f"{stub.requests[-1].headers} {stub.requests[-1].body}"
