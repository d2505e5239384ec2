"""The checks that every preset has to pass: §14.5's list, and the rules of a seat's session (§3.3.B, §6.6).

A check is a function; its docstring is what it says, its name is what it is called. It returns what else it
saw, by name, and raises `Failed` or `NotApplicable`. Checks look at scenes, each of which is played once.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from council.conformance import chats, endings, failures, harness, prompts
from council.conformance.verdicts import Failed, NotApplicable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from council.conformance.bench import Bench

    Judge = Callable[[Bench], Awaitable[dict[str, str] | None]]


class Outcome(StrEnum):
    """What became of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True, slots=True)
class Check:
    """One sentence that has to be true of a client, and what finds out."""

    judge: Judge

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        return self.judge.__name__.replace("_", "-")

    @property
    def says(self) -> str:
        """The sentence."""
        return (self.judge.__doc__ or "").strip()


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a check: ``why`` it failed or does not apply, and what it ``saw``, by name."""

    check: Check
    outcome: Outcome
    why: str = ""
    saw: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


CHECKS = tuple(
    Check(judge)
    for judge in (
        chats.version_is_known,
        chats.three_turns_are_one_chat,
        chats.chat_is_named_exactly,
        chats.id_is_kept_after_success_only,
        chats.system_prompt_is_sent,
        chats.nothing_else_is_asked,
        chats.usage_is_the_turns_own,
        harness.restricted_has_no_tools,
        harness.restricted_picks_up_nothing,
        harness.made_up_tool_is_not_run,
        harness.native_is_the_harness,
        harness.native_asks_before_it_acts,
        chats.seats_do_not_hear_each_other,
        chats.chat_that_is_gone_is_said,
        chats.unknown_id_begins_no_chat,
        failures.failures_are_told,
        failures.failed_turns_leave_no_trace,
        failures.missing_key_is_said,
        failures.wrong_key_is_not_shown,
        failures.nobody_there_was_sent_nothing,
        endings.one_turn_at_a_time,
        endings.revoked_turn_leaves_no_trace,
        endings.killed_client_may_have_had_the_prompt,
        endings.hanging_turn_ends_in_time,
        endings.killed_wrapper_finds_its_chat,
        endings.no_process_is_left,
        endings.wrapper_is_kept_from_the_client,
        prompts.commands_are_text,
        prompts.dialogs_are_text,
        prompts.contributions_are_text,
        prompts.token_does_not_cut,
        prompts.megabyte_arrives_whole,
        prompts.overlong_prompt_is_refused,
        prompts.controls_are_taken_out,
        prompts.answers_have_a_bound,
    )
)
"""Every check, in the order in which they are made."""


async def perform(bench: Bench, check: Check) -> Result:
    """Make one check. Raises what is nobody's fault but ours."""
    began = time.monotonic()
    try:
        outcome, why, saw = Outcome.PASSED, "", await check.judge(bench) or {}
    except Failed as failed:
        outcome, why, saw = Outcome.FAILED, str(failed), {}
    except NotApplicable as told:
        outcome, why, saw = Outcome.NOT_APPLICABLE, str(told), {}
    return Result(check, outcome, why, saw, time.monotonic() - began)


def code(results: Iterable[Result]) -> int:
    """The exit code: 1 if a check failed, else 0."""
    return int(any(result.outcome is Outcome.FAILED for result in results))
