"""The file of capability profiles: what it may say, and how it is told what is wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from arbiter.edge.limits import Doors
from arbiter.profiles import MAX_PROBLEMS, Entrance, load_profiles
from consilium.errors import UserError
from consilium.messages import DisconnectPolicy
from consilium.profile import DEFAULT_PROFILES

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR = "operator:\n  role: operator\n"


def test_without_a_file_the_built_in_profiles_apply() -> None:
    assert load_profiles(None) == Entrance(DEFAULT_PROFILES, Doors())


def test_a_file_takes_their_place_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(
        OPERATOR + "guest:\n  role: participant\n  names: [guest_*, ada]\n"
        "  disconnect_ceiling: keep_alive\n  messages_per_second: 5\n  burst: 7\n"
    )
    profiles = load_profiles(file).profiles
    assert list(profiles) == ["operator", "guest"]
    guest = profiles["guest"]
    assert guest.names == ("guest_*", "ada")
    assert guest.disconnect_ceiling is DisconnectPolicy.KEEP_ALIVE
    assert (guest.messages_per_second, guest.burst) == (5, 7)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", ": must hold a section for each profile"),
        ("- a\n", ": must hold a section for each profile"),
        (OPERATOR + "x: 1\n", ", line 3: x: must be a section of keys and values (given: 1)"),
        (OPERATOR + "x:\n  names: []\n", ", line 3: x.role: is required"),
        (OPERATOR + "  brust: 3\n", ", line 3: operator.brust: is not a key here; did you mean burst?"),
        (OPERATOR + "  zzz: 3\n", ", line 3: operator.zzz: is not a key here; the keys are role, names,"),
        (OPERATOR + "  burst: '3'\n", ", line 3: operator.burst: must be a whole number (given: '3')"),
        (OPERATOR + "  burst: 0\n", ", line 3: operator.burst: must be at least 1 (given: 0)"),
        (
            OPERATOR + "  names: [A-b]\n",
            ", line 3: operator.names[0]: must be a name, the beginning of one and then *, or *; {id} is ",
        ),
        (OPERATOR + "B C:\n  role: operator\n", ", line 3: B C: a profile's name must be 1 to 64 of a-z"),
        (OPERATOR + "doors: 3\n", ", line 3: doors: must be a section of keys and values (given: 3)"),
        (OPERATOR + "doors:\n  handshake: 3\n", ", line 4: doors.handshake: is not a key here; did you mean"),
        (
            OPERATOR + "doors:\n  write_seconds: 0\n",
            ", line 4: doors.write_seconds: must be more than 0 (given: 0)",
        ),
        (OPERATOR + OPERATOR, ", line 3: operator: given twice"),
        ("arbiter:\n  role: operator\n", "is what an Arbiter's own certificate is called"),
        ("participant:\n  role: participant\n", "nobody could govern the debate"),
    ],
)
def test_a_mistake_is_told_with_file_line_and_key(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        load_profiles(file)
    assert refused.value.message.startswith(str(file))
    assert told in refused.value.message


def test_several_mistakes_are_told_at_once_up_to_a_bound(tmp_path: Path) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(OPERATOR + "  burst: 0\n  names: 1\n")
    with pytest.raises(UserError, match="2 problems") as refused:
        load_profiles(file)
    assert [line.strip()[:7] for line in refused.value.hint.splitlines()] == ["line 3:", "line 4:"]
    file.write_text(OPERATOR + "".join(f"p{n}:\n  role: x\n" for n in range(MAX_PROBLEMS + 2)))
    with pytest.raises(UserError) as refused:
        load_profiles(file)
    assert refused.value.hint.endswith("and 2 more")


def test_the_doors_limits_stand_beside_the_profiles(tmp_path: Path) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(OPERATOR + "doors:\n  handshakes: 7\n  first_message_seconds: 2.5\n")
    entrance = load_profiles(file)
    assert list(entrance.profiles) == ["operator"]
    assert entrance.doors == Doors(handshakes=7, first_message_seconds=2.5)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere\.yaml: cannot be read"):
        load_profiles(tmp_path / "nowhere.yaml")
