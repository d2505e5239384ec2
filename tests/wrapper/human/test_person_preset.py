"""The preset of a person: every mistake is refused with the file, the key and the rule."""

from __future__ import annotations

from pathlib import Path

import pytest

from consilium.errors import UserError
from wrapper.adapters import presets
from wrapper.adapters.presets import load_person, load_preset, read_preset

OWN = (Path(presets.__file__).parent.parent / "presets" / "human.toml").read_text()


def written(folder: Path, old: str, new: str) -> Path:
    assert old in OWN
    path = folder / "mine.toml"
    path.write_text(OWN.replace('name = "human"', 'name = "mine"').replace(old, new))
    return path


def test_a_preset_of_ones_own_has_other_keys_and_a_timeout(tmp_path: Path) -> None:
    path = written(tmp_path, 'away = "ctrl+a"', 'away = "alt+w"')
    path.write_text(path.read_text().replace("# timeout_s = 60 ", "timeout_s = 60 "))
    mine = load_person("mine", tmp_path)
    assert (mine.brand, mine.person.keys["away"], mine.person.timeout_s) == ("human", "alt+w", 60)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('away = "ctrl+a"', 'away = "ctrl+b"', "person: keys: ctrl+b cannot be both away and back"),
        ('away = "ctrl+a"', 'away = "ctrl+m"', "person.keys.away: String should match"),
        ('away = "ctrl+a"', 'dance = "ctrl+g"', "person.keys.dance"),
        ('away = "ctrl+a"', "", "person: keys: away has no key"),
        ("# timeout_s = 60 ", "timeout_s = 0 ", "person.timeout_s: Input should be greater than 0"),
        ('brand = "human"', 'brand = "human"\nexecutable = "me"', "executable: there is no such key"),
        ('name = "human"', 'name = "other"', "name must be 'mine', like the file"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    path = written(tmp_path, old, new)
    if "other" in new:
        path.write_text(OWN.replace(old, new))
    with pytest.raises(UserError) as refused:
        load_person("mine", tmp_path)
    assert str(path) in refused.value.message
    assert words in refused.value.message


def test_persons_and_clients_are_not_taken_for_one_another(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the preset human is a person's, not a client's"):
        load_preset("human")
    with pytest.raises(UserError, match="the preset claude is a client's, not a person's"):
        load_person("claude")
    with pytest.raises(UserError, match="there is no preset called 'humn'"):
        load_person("humn")
    with pytest.raises(UserError, match="is a person's"):
        read_preset(written(tmp_path, "brand", "brand"))
