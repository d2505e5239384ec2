"""Which gaps the templates of a preset may have, and which they must. Pure.

``{name}`` in a template is one of the preset's settings or one of `GAPS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wrapper.adapters import templates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wrapper.adapters.presets import Preset

GAPS = frozenset({"home", "system_file"})
"""What every template may name: the folder of the client's state, and the file with the system prompt."""

ID_GAP = "id"
"""What a template for an existing chat names as well."""

NEW_ID_GAP = "new_id"
"""What a template names where the id of the chat is ours to choose."""

PROMPT_GAP = "prompt"
"""What `run.form` names, and nothing else."""

HARNESS, OPTIONS = "{harness}", "{options}"
"""Whole arguments that stand for the arguments of the harness profile, and of the settings."""

RESERVED = GAPS | {ID_GAP, NEW_ID_GAP, HARNESS[1:-1], OPTIONS[1:-1]}
"""What no setting may be called."""


def check_names(preset: Preset) -> None:
    """Refuse a gap that nothing fills. Raises `ValueError`, which says where it is."""
    if taken := preset.settings.keys() & RESERVED:
        raise ValueError(f"settings: {min(taken)} has a meaning of its own; choose another name")
    certain = {name for name, setting in preset.settings.items() if not setting.may_be_left_out}
    for where, template, also in _templates(preset):
        templates.check(where, template, GAPS | certain | also)
    if preset.run.form is not None:
        templates.check("run.form", preset.run.form, frozenset({PROMPT_GAP}))
        if not templates.names(preset.run.form):
            raise ValueError(f"run.form: it has to hold {{{PROMPT_GAP}}}")


def check_places(preset: Preset) -> None:
    """Refuse arguments that lack a gap. Raises `ValueError`, which says where it is missing."""
    _check_that_the_chat_is_named(preset)
    _check_that_arguments_have_their_place(preset)


def _check_that_the_chat_is_named(preset: Preset) -> None:
    """A turn that names no chat could be answered in any (§6.6)."""
    needed = [("run.next", preset.run.next, ID_GAP)]
    if preset.chat.id == "chosen":
        needed.append(("run.first", preset.run.first, NEW_ID_GAP))
        if preset.chat.turn == "fork":
            needed.append(("run.next", preset.run.next, NEW_ID_GAP))
    if preset.terminal is not None and preset.terminal.next:
        if preset.chat.id != "chosen":
            raise ValueError("terminal.next: a screen does not tell the id of a chat; it has to be chosen")
        needed += [
            ("terminal.first", preset.terminal.first, NEW_ID_GAP),
            ("terminal.next", preset.terminal.next, ID_GAP),
        ]
    for where, arguments, gap in needed:
        if not any(gap in templates.names(argument) for argument in arguments):
            raise ValueError(f"{where}: {{{gap}}} is missing, which says in which chat the turn is taken")


def _check_that_arguments_have_their_place(preset: Preset) -> None:
    optional = any(setting.arguments for setting in preset.settings.values())
    runs = (("run.first", preset.run.first), ("run.next", preset.run.next))
    wanted = [(OPTIONS, optional, runs)]
    wanted.append((HARNESS, any(profile.arguments for profile in preset.profiles.values()), runs))
    if preset.terminal is not None:
        later = (("terminal.next", preset.terminal.next),) if preset.terminal.next else ()
        starts = (("terminal.first", preset.terminal.first), *later)
        wanted += [(OPTIONS, optional, starts), (HARNESS, any(preset.terminal.harness.values()), starts)]
    for gap, used, places in wanted:
        for where, arguments in places:
            if used and gap not in arguments:
                raise ValueError(f"{where}: {gap} is missing, and there are arguments to stand there")


def _templates(preset: Preset) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Every template: where it is, what it says, and what it may name besides."""
    nothing, an_id = frozenset[str](), frozenset({ID_GAP})
    chosen = frozenset({NEW_ID_GAP}) if preset.chat.id == "chosen" else nothing
    later = an_id | (chosen if preset.chat.turn == "fork" else nothing)
    lists = {"run.first": (preset.run.first, chosen), "run.next": (preset.run.next, later)}
    tables = {"env.set": preset.env.set, "state.files": preset.state.files}
    for name, setting in preset.settings.items():
        lists[f"settings.{name}.arguments"] = setting.arguments, frozenset({name})
        for variable, value in setting.set.items():
            yield f"settings.{name}.set.{variable}", value, frozenset({name})
    for called, profile in preset.profiles.items():
        lists[f"profiles.{called}.arguments"] = profile.arguments, nothing
        tables[f"profiles.{called}.set"] = profile.set
        tables[f"profiles.{called}.files"] = profile.files
    if preset.terminal is not None:
        lists |= {
            "terminal.first": (preset.terminal.first, chosen),
            "terminal.next": (preset.terminal.next, an_id),
        }
        lists |= {
            f"terminal.harness.{name}": (given, nothing) for name, given in preset.terminal.harness.items()
        }
        tables |= {"terminal.set": preset.terminal.set, "terminal.files": preset.terminal.files}
    for key, (arguments, also) in lists.items():
        for place, argument in enumerate(arguments):
            if not (key.endswith((".first", ".next")) and argument in (HARNESS, OPTIONS)):
                yield f"{key}[{place}]", argument, also
    for key, values in tables.items():
        for name, value in values.items():
            yield f"{key}.{name}", value, nothing
    yield "state.proof", preset.state.proof, an_id
