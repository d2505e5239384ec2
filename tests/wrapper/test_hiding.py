"""`wrapper.adapters.hiding`: a client's keys, and what it says."""

from __future__ import annotations

from wrapper.adapters.hiding import Keys
from wrapper.adapters.presets import load_preset

CLAUDE = load_preset("claude")


def test_keys_are_hidden_whether_a_preset_or_a_seat_names_them() -> None:
    given = {"ANTHROPIC_API_KEY": "sk-ant-12345678", "MY_TOKEN": "sk-ant-12345678-more", "PLACE": "somewhere"}
    keys = Keys(CLAUDE, ("MY_TOKEN", "PLACE"), given)
    said = "sk-ant-12345678-more and sk-ant-12345678 in somewhere"
    assert keys.hide(said) == "(MY_TOKEN) and (ANTHROPIC_API_KEY) in somewhere"
    assert keys.hide_bytes(said.encode()) == keys.hide(said).encode()


def test_what_is_no_key_or_any_word_is_left_as_it_is() -> None:
    keys = Keys(CLAUDE, ("A_KEY", "UNSET_KEY"), {"A_KEY": "a word"})
    said = "a word is a word"
    assert keys.hide(said) == said
    output = said.encode()
    assert keys.hide_bytes(output) is output, "what holds no key is not copied"


def test_a_client_without_a_login_has_the_keys_that_its_seat_names() -> None:
    keys = Keys(CLAUDE.model_copy(update={"login": None}), ("A_KEY",), {"A_KEY": "0123456789"})
    assert keys.hide("0123456789") == "(A_KEY)"
