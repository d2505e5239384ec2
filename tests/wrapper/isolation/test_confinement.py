"""`wrapper.isolation.confinement`: what is asked for, what there is, and what is said where that is less."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from consilium.errors import UserError
from wrapper.isolation import confinement as module
from wrapper.isolation import launcher
from wrapper.isolation.confinement import Confinement, OtherUser, add_options, confinement
from wrapper.isolation.launch import User

if TYPE_CHECKING:
    from collections.abc import Mapping

HOME = ("--client-user", "4242:4243", "--client-home", "/srv/client")
THEIRS = OtherUser(user=User(4242, 4243), home=Path("/srv/client"))
NO_USER = "the client has no user of its own (--client-user)"


def confined(*words: str, wish: Any = None, environment: Mapping[str, str] | None = None) -> Confinement:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return confinement(parser.parse_args(words), wish, environment or {})


@pytest.fixture(autouse=True)
def able(monkeypatch: pytest.MonkeyPatch) -> None:
    """A place where every layer can be had."""
    monkeypatch.setattr(module, "_may_change_user", lambda: True)
    monkeypatch.setattr(launcher, "abi", lambda: 7)


def test_a_plain_host_is_relaxed_and_says_what_it_goes_without() -> None:
    assert confined() == Confinement(isolation="relaxed", client=None, missing=(NO_USER,))


def test_with_every_layer_strict_is_granted() -> None:
    assert confined(*HOME, "--isolation", "strict") == Confinement(isolation="strict", client=THEIRS)


def test_the_images_variables_say_the_same() -> None:
    environment = {
        "CONSILIUM_ISOLATION": "strict",
        "CONSILIUM_CLIENT_USER": "4242:4243",
        "CONSILIUM_CLIENT_HOME": "/srv/client",
    }
    assert confined(environment=environment) == Confinement(isolation="strict", client=THEIRS)


def test_the_command_line_wins_over_the_council_file_and_that_over_the_environment() -> None:
    strict = {"CONSILIUM_ISOLATION": "strict"}
    assert confined(*HOME, environment=strict).isolation == "strict"
    assert confined(*HOME, wish="relaxed", environment=strict).isolation == "relaxed"
    assert confined(*HOME, "--isolation", "strict", wish="relaxed").isolation == "strict"
    assert confined(environment={"CONSILIUM_ISOLATION": ""}).isolation == "relaxed"


def test_a_word_that_is_neither_is_refused() -> None:
    with pytest.raises(UserError, match="strict or relaxed"):
        confined(environment={"CONSILIUM_ISOLATION": "loose"})


def old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "abi", lambda: 3)


def no_landlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "abi", lambda: 0)


def no_capabilities(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_may_change_user", lambda: False)


def no_init(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getpid", lambda: 1)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (old_kernel, "this kernel has version 3 of it"),
        (no_landlock, "has none, or does not allow it"),
        (no_capabilities, "capabilities SETUID and SETGID"),
        (no_init, "init: true"),
    ],
)
def test_strict_names_the_layer_that_is_missing_and_relaxed_takes_the_rest(
    monkeypatch: pytest.MonkeyPatch, spoil: Any, words: str
) -> None:
    spoil(monkeypatch)
    with pytest.raises(UserError, match="isolation: strict, and") as refused:
        confined(*HOME, "--isolation", "strict")
    assert words in refused.value.message
    assert "isolation: relaxed" in refused.value.hint
    (missing,) = confined(*HOME).missing
    assert words in missing


def test_strict_without_another_user_is_refused() -> None:
    with pytest.raises(UserError, match="no user of its own"):
        confined(wish="strict")


def test_without_the_right_to_change_users_a_relaxed_client_is_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    no_capabilities(monkeypatch)
    assert confined(*HOME).client is None


def test_without_landlock_a_relaxed_client_still_has_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    no_landlock(monkeypatch)
    client = confined(*HOME).client
    assert client is not None
    assert not client.fenced


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--client-user", "4242:4242"), "needs a folder of its own"),
        (("--client-home", "/srv/client"), "needs a folder of its own"),
        (("--client-user", "4242", "--client-home", "/x"), "is not UID:GID"),
        (("--client-user", "a:b", "--client-home", "/x"), "is not UID:GID"),
        (("--client-user", "0:1", "--client-home", "/x"), "cannot run as user 0:1"),
        (("--client-user", "1:0", "--client-home", "/x"), "cannot run as user 1:0"),
        (("--client-user", "99999999999:1", "--client-home", "/x"), "cannot run as user"),
        (("--client-user", "4242:4242", "--client-home", "x"), "absolute path"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(words: tuple[str, ...], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        confined(*words)


def test_the_client_is_never_the_wrappers_own_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4242)
    with pytest.raises(UserError, match="neither root nor the wrapper"):
        confined(*HOME)


def test_whether_users_can_be_changed_is_read_from_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    status = Path("/proc/self/status").read_text()
    effective = int(next(line for line in status.splitlines() if line.startswith("CapEff")).split()[1], 16)
    assert module._may_change_user() == (effective & 0xC0 == 0xC0)
