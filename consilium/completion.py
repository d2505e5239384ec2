"""`consilium completion bash|zsh|fish`: a completion script, written from the real parsers.

The parsers are read when the script is printed, so pressing Tab starts no Python. A command whose part is
not installed is completed by name alone.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import dataclass, field

from consilium.cli import COMMANDS

_FILE_WORDS = frozenset({"FILE", "DIR", "PATH"})


@dataclass(slots=True)
class Node:
    """What may follow one command path: words, and for each option that takes a value, its choices.

    ``None`` instead of choices is a file; an option with neither is absent from ``values``.
    """

    words: list[str] = field(default_factory=list)
    values: dict[str, list[str] | None] = field(default_factory=dict)


def parser() -> argparse.ArgumentParser:
    """The options of `consilium completion`."""
    own = argparse.ArgumentParser(
        prog="consilium completion",
        description="Print a completion script. Load it with: source <(consilium completion bash)",
    )
    own.add_argument("shell", choices=list(WRITERS), help="the shell that will read the script")
    return own


def main(argv: list[str]) -> int:
    """Print the script for the shell that ``argv`` names."""
    options = parser().parse_args(argv)
    sys.stdout.write(WRITERS[options.shell](tree()))
    return 0


def tree() -> dict[str, Node]:
    """Every command path of `consilium`, by the words that lead to it."""
    nodes = {
        "consilium": Node([*COMMANDS, "help", "--help", "--version"]),
        "consilium help": Node([*COMMANDS]),
    }
    for name, (target, _) in COMMANDS.items():
        try:
            module = importlib.import_module(target.partition(":")[0])
        except ModuleNotFoundError:
            nodes[f"consilium {name}"] = Node()
        else:
            _walk(module.parser(), f"consilium {name}", nodes)
            for word, below in getattr(module, "SUBCOMMANDS", {}).items():
                nodes[f"consilium {name}"].words.append(word)
                _walk(below(), f"consilium {name} {word}", nodes)
    return nodes


def _walk(current: argparse.ArgumentParser, path: str, nodes: dict[str, Node]) -> None:
    node = nodes[path] = Node()
    for action in current._actions:  # noqa: SLF001 - argparse has no other way to be read
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - as above
            for name, below in action.choices.items():
                node.words.append(name)
                _walk(below, f"{path} {name}", nodes)
        elif not action.option_strings:
            node.words += [str(choice) for choice in action.choices or ()]
        else:
            node.words += [option for option in action.option_strings if option.startswith("--")]
            _note_value(action, node)


def _note_value(action: argparse.Action, node: Node) -> None:
    for option in action.option_strings:
        if action.choices is not None:
            node.values[option] = [str(choice) for choice in action.choices]
        elif action.metavar in _FILE_WORDS:
            node.values[option] = None


def bash(nodes: dict[str, Node]) -> str:
    """A script for bash 4 and newer. Where it offers nothing, bash offers file names."""
    offer = 'COMPREPLY=($(compgen -W "{}" -- "$cur"))'
    values, words = _cases(nodes, offer, files=":")
    return f"""\
# consilium completion for bash: source <(consilium completion bash)
_consilium() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} place=consilium i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$place ${{COMP_WORDS[i]}}" in
            {_paths(nodes)}) place+=" ${{COMP_WORDS[i]}}" ;;
        esac
    done
    case "$place $prev" in
{values}
    esac
    case "$place" in
{words}
    esac
}}
complete -o default -F _consilium consilium
"""


def zsh(nodes: dict[str, Node]) -> str:
    """A script for zsh, read after `compinit`."""
    values, words = _cases(nodes, "compadd -- {}", files="_files")
    return f"""\
#compdef consilium
# consilium completion for zsh: source <(consilium completion zsh)
_consilium() {{
    local place=consilium word
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$place $word" in
            {_paths(nodes)}) place="$place $word" ;;
        esac
    done
    case "$place ${{words[CURRENT-1]}}" in
{values}
    esac
    case "$place" in
{words}
    esac
    [[ ${{words[CURRENT]}} == -* ]] || _files
}}
compdef _consilium consilium
"""


def fish(nodes: dict[str, Node]) -> str:
    """A script for fish."""
    lines = [
        "# consilium completion for fish: consilium completion fish | source",
        "function __consilium_place",
        "    set -l place consilium",
        "    for word in (commandline -opc)[2..-1]",
        '        switch "$place $word"',
        f"            case {_paths(nodes, ' ')}",
        '                set place "$place $word"',
        "        end",
        "    end",
        "    echo $place",
        "end",
    ]
    for path, node in nodes.items():
        lines += _fish_lines(path, node)
    return "\n".join(lines) + "\n"


def _fish_lines(path: str, node: Node) -> list[str]:
    condition = f"test (__consilium_place) = '{path}'"
    at = f'complete -c consilium -n "{condition}"'
    plain = [word for word in node.words if not word.startswith("--")]
    lines = [f'{at} -f -a "{" ".join(plain)}"'] if plain else []
    for option in (word for word in node.words if word.startswith("--")):
        value = " -r -F" if option in node.values else ""
        if choices := node.values.get(option):
            value = f' -x -a "{" ".join(choices)}"'
        lines.append(f"{at} -l {option.removeprefix('--')}{value}")
    return lines


def _cases(nodes: dict[str, Node], offer: str, *, files: str) -> tuple[str, str]:
    """The branches of the two case statements that bash and zsh share: option values, then words."""

    def branch(words: list[str] | None) -> str:
        return files if words is None else offer.format(" ".join(words))

    values = [
        f'        "{path} {option}") {branch(choices)}; return ;;'
        for path, node in nodes.items()
        for option, choices in node.values.items()
    ]
    words = [f'        "{path}") {branch(node.words)} ;;' for path, node in nodes.items() if node.words]
    return "\n".join(values), "\n".join(words)


def _paths(nodes: dict[str, Node], between: str = " | ") -> str:
    return between.join(f'"{path}"' for path in nodes if path != "consilium")


WRITERS = {"bash": bash, "zsh": zsh, "fish": fish}
