"""Every check passes for a client that keeps the rules, and fails for one that breaks its rule."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from council.conformance import bench, endings, failures, prompts
from council.conformance.bench import Bench
from council.conformance.checks import CHECKS, Check, Outcome, perform
from wrapper.adapters.base import Answer
from wrapper.adapters.keeping import KeptChat, fingerprint, keep_chat
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import Preset, read_preset
from wrapper.prompts import END_TOKEN

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

STANDINS = Path(__file__).parents[2] / "standins"
NAMED = {check.name: check for check in CHECKS}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the client."""
    folder = tmp_path_factory.mktemp("programs")
    program = folder / "tried"
    words = (sys.executable, "-I", "-S", str(STANDINS / "tried_standin.py"))
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o700)
    return folder


def bench_of(programs: Path, folder: Path, flaw: str = "", **choices: Any) -> Bench:
    """A bench of the client, which has a ``flaw`` or none."""
    preset = choices.pop("preset", read_preset(STANDINS / "tried.toml"))
    if flaw:
        tried = preset.conformance
        changed = tried.model_copy(update={"settings": {**tried.settings, "flaw": flaw}})
        preset = preset.model_copy(update={"conformance": changed})
    return Bench(preset, folder, {"PATH": f"{programs}:/usr/bin:/bin", "LANG": "C.UTF-8"}, **choices)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is quick, so what hangs need not hang for long."""
    monkeypatch.setattr(endings, "DEADLINE_FROM", 0.5)
    monkeypatch.setattr(endings, "GONE_SECONDS", 2.0)


@pytest.fixture
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a kind is enough where the client has the flaw with all of them."""
    monkeypatch.setattr(failures, "TOLD", {act: failures.TOLD[act] for act in ("400", "401", "429")})
    monkeypatch.setattr(failures, "AT_FIRST", ("400",))
    monkeypatch.setattr(prompts, "ALONE", ("@/etc/passwd", "/help"))
    monkeypatch.setattr(prompts, "DIALOGS", prompts.DIALOGS[:1])


@pytest.fixture(scope="module")
def flawed(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Bench]:
    """A bench of the client with a flaw, the same one for all of its checks."""
    return cache(lambda flaw: bench_of(programs, tmp_path_factory.mktemp(flaw), flaw))


@pytest.fixture(scope="module")
def sound(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench of the client without a flaw, for all of its checks."""
    return bench_of(programs, tmp_path_factory.mktemp("bench"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_a_client_that_keeps_the_rules_passes(sound: Bench, check: Check) -> None:
    result = await perform(sound, check)
    assert (result.outcome, result.why) == (Outcome.PASSED, "")


FLAWS = [
    ("forgets", "three-turns-are-one-chat", "'second question' was answered by"),
    ("forgets-itself", "three-turns-are-one-chat", "the third request carried"),
    ("forgets", "seats-do-not-hear-each-other", "'I am one still' was answered by"),
    ("no-system", "system-prompt-is-sent", "not in the request"),
    ("asks-more", "nothing-else-is-asked", "POST /v1/messages"),
    ("counts-the-chat", "usage-is-the-turns-own", "turn 2: tokens_in is"),
    ("always-tools", "restricted-has-no-tools", "offered shell"),
    ("reads-memory", "restricted-picks-up-nothing", "MARK-OF-THE-PROJECT"),
    ("runs-hooks", "restricted-picks-up-nothing", "was run that its-folder-has-set-up"),
    ("runs-any-tool", "made-up-tool-is-not-run", "the command was run"),
    ("runs-any-tool", "native-asks-before-it-acts", "the command was run"),
    ("keeps-quiet", "native-asks-before-it-acts", "what was refused is told as ()"),
    ("ignores-memory", "native-is-the-harness", "went without MARK-OF-THE-USER, MARK-OF-THE-PROJECT"),
    ("one-memory", "seats-do-not-hear-each-other", "'I am two' was answered by"),
    ("begins-anew", "unknown-id-begins-no-chat", "'second' was answered"),
    ("swallows-errors", "failures-are-told", "is told as empty_answer"),
    ("no-words", "failures-are-told", "is told as client_error, prompt sent: maybe"),
    ("remembers-failures", "failed-turns-leave-no-trace", "was sent together with"),
    ("remembers-failures", "revoked-turn-leaves-no-trace", "'second' was answered by"),
    ("remembers-failures", "killed-wrapper-finds-its-chat", "'fourth' was answered by"),
    ("asks-without-key", "missing-key-is-said", "was answered"),
    ("no-words", "missing-key-is-said", "prompt sent: maybe"),
    ("shows-key", "wrong-key-is-not-shown", "the key is shown"),
    ("hides-the-line", "nobody-there-was-sent-nothing", "prompt sent: maybe, not as"),
    ("remembers-failures", "killed-client-may-have-had-the-prompt", "was sent together with"),
    ("gives-up", "hanging-turn-ends-in-time", "is told as client_error"),
    ("leaves-a-process", "no-process-is-left", "/bin/sleep"),
    ("leaves-a-process", "revoked-turn-leaves-no-trace", "/bin/sleep"),
    ("leaves-a-process", "hanging-turn-ends-in-time", "/bin/sleep"),
    ("leaves-a-process", "killed-wrapper-finds-its-chat", "/bin/sleep"),
    ("commands", "commands-are-text", "'/help' reached no model"),
    ("attaches", "commands-are-text", "'@/etc/passwd' arrived as"),
    ("forgets", "dialogs-are-text", "the chat does not go on from"),
    ("dialogs", "dialogs-are-text", "arrived as 'yes'"),
    ("drops-quotes", "contributions-are-text", "arrived as"),
    ("attaches", "token-does-not-cut", "arrived as"),
    ("cuts-input", "megabyte-arrives-whole", "did not arrive as it was"),
    ("no-limit", "overlong-prompt-is-refused", "was answered"),
    ("cuts-output", "answers-have-a-bound", "of 2000000 characters 1000 arrived"),
]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(("flaw", "name", "why"), FLAWS)
async def test_a_client_that_breaks_a_rule_fails(
    flawed: Callable[[str], Bench], flaw: str, name: str, why: str
) -> None:
    result = await perform(flawed(flaw), NAMED[name])
    assert result.outcome is Outcome.FAILED
    assert why in result.why


async def test_a_client_that_would_begin_anew_is_not_asked_where_we_see_that_its_chat_is_gone(
    flawed: Callable[[str], Bench],
) -> None:
    result = await perform(flawed("begins-anew"), NAMED["chat-that-is-gone-is-said"])
    assert (result.outcome, result.why) == (Outcome.PASSED, "")


class KeepsTheFirstId(NativeAdapter):
    """Stays with the chat that was copied."""

    def _adopt(self, chat: str, *more: Any) -> None:
        super()._adopt(self._id or chat, *more)


class KeepsAtOnce(NativeAdapter):
    """Keeps an id that never answered."""

    async def send_turn(self, text: str) -> Answer:
        try:
            return await super().send_turn(text)
        except AdapterFault:
            system = fingerprint(self._system_prompt)
            keep_chat(self._folder, KeptChat(preset="tried", id="never-answered", system_prompt=system))
            raise


class Unlocked(NativeAdapter):
    """Takes several turns at a time."""

    async def send_turn(self, text: str) -> Answer:
        return await self._take_turn(text)


class CutsAtTheToken(NativeAdapter):
    """Takes the first token for the end."""

    async def send_turn(self, text: str) -> Answer:
        told = await super().send_turn(text)
        return Answer(told.text.partition(END_TOKEN)[0], told.usage, told.refused)


class LeavesEscapes(NativeAdapter):
    """Does not clean what it was told."""

    async def send_turn(self, text: str) -> Answer:
        told = await super().send_turn(text)
        return Answer(f"\x1b[0m{told.text}", told.usage, told.refused)


class BeginsAnew(NativeAdapter):
    """Forgets that there was a chat."""

    @property
    def memory_lost(self) -> bool:
        return False


class TellsNothing(NativeAdapter):
    """Has faults without words."""

    async def send_turn(self, text: str) -> Answer:
        try:
            return await super().send_turn(text)
        except AdapterFault as fault:
            raise AdapterFault(fault.fault, fault.prompt_sent, "it failed\x07") from None


def passes_all_on(preset: Preset, settings: Mapping[str, str], folder: Path, **means: Any) -> NativeAdapter:
    """Hands its client what is nobody else's."""
    passed = (*means.pop("passed"), "SOMEBODYS_SECRET")
    return NativeAdapter(preset, settings, folder, passed=passed, **means)


ADAPTERS = [
    (KeepsTheFirstId, "chat-is-named-exactly", "chat.turn is fork, and the ids were"),
    (KeepsAtOnce, "id-is-kept-after-success-only", "never-answered was kept after a first turn that failed"),
    (Unlocked, "one-turn-at-a-time", "a turn at the same time was told None"),
    (CutsAtTheToken, "token-does-not-cut", "was answered by 'I have seen 3"),
    (LeavesEscapes, "controls-are-taken-out", "what is left is"),
    (BeginsAnew, "chat-that-is-gone-is-said", "'third' was answered"),
    (BeginsAnew, "unknown-id-begins-no-chat", "'second' was answered"),
    (TellsNothing, "failures-are-told", "it says nothing about why"),
    (TellsNothing, "killed-client-may-have-had-the-prompt", "it is told as: it failed"),
    (passes_all_on, "wrapper-is-kept-from-the-client", "the client was given SOMEBODYS_SECRET"),
]


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize(("factory", "name", "why"), ADAPTERS)
async def test_an_adapter_that_breaks_a_rule_fails(
    programs: Path, tmp_path: Path, factory: Any, name: str, why: str
) -> None:
    result = await perform(bench_of(programs, tmp_path, factory=factory), NAMED[name])
    assert result.outcome is Outcome.FAILED
    assert why in result.why


async def test_a_version_that_nobody_tried_fails(programs: Path, tmp_path: Path) -> None:
    preset = read_preset(STANDINS / "tried.toml")
    older = preset.version.model_copy(update={"minimum": "0.8", "known_good": "0.9"})
    tried = bench_of(programs, tmp_path, preset=preset.model_copy(update={"version": older}))
    result = await perform(tried, NAMED["version-is-known"])
    assert (result.outcome, result.why) == (
        Outcome.FAILED,
        "1.0 is newer than 0.9, the last that was tried with it",
    )


class AsksNobody(NativeAdapter):
    """Gives a turn up before anybody is asked."""

    async def send_turn(self, text: str) -> Answer:
        if "<<hang" in text:
            raise AdapterFault(Fault.CLIENT_ERROR, PromptSent.NO, "it has given up")
        return await super().send_turn(text)


async def test_a_client_that_asks_nobody_fails_and_stops_nothing(
    programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "HEARD_SECONDS", 0.3)
    tried = bench_of(programs, tmp_path, factory=AsksNobody)
    for name in ("revoked-turn-leaves-no-trace", "one-turn-at-a-time"):
        result = await perform(tried, NAMED[name])
        assert result.outcome is Outcome.FAILED
        assert result.why.startswith("the provider waited for a model request")


async def test_what_is_nobodys_fault_but_ours_is_not_told_as_a_clients(
    programs: Path, tmp_path: Path
) -> None:
    async def broken(_room: object) -> None:
        raise ExceptionGroup("two things at a time", [KeyError("ours")])

    with pytest.raises(KeyError, match="ours"):
        await bench_of(programs, tmp_path).scene(broken)


def test_there_is_no_check_that_cannot_fail() -> None:
    failing = {name for _, name, _ in (*FLAWS, *ADAPTERS)} | {"version-is-known"}
    assert failing == set(NAMED)
