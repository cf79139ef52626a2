"""Why a file or a script is not read (``unread.toml`` has known stacks), with what to give instead."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from asap.core.errors import ConfigError, UnreadError
from asap.core.files import is_file
from asap.core.text import plain
from asap.experiments.files.documents import below_variable, find_named, read_text
from asap.experiments.processes import starts_launcher
from asap.experiments.shell import (
    EVALUATED,
    SCRIPTS,
    Command,
    commands_within,
    has_substitution,
    options,
    read_commands,
    unread_line,
    words,
)
from asap.experiments.training_program import check_arguments, check_program
from asap.models.architecture import SHAPES


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Signs(_Part):
    all: frozenset[str] = frozenset()
    none: frozenset[str] = frozenset()
    any: frozenset[str] = frozenset()
    least: int = 1
    text: dict[str, re.Pattern[str]] = {}
    sections: tuple[str, ...] = ()
    within: dict[str, frozenset[str]] = {}

    def hold(self, values: Mapping[str, Any]) -> bool:
        """Whether a mapping has all of them."""
        sections = (_at(values, key) for key in self.sections)
        return (
            self.all <= values.keys()
            and self.none.isdisjoint(values)
            and (not self.any or len(self.any & values.keys()) >= self.least)
            and all(pattern.search(str(_at(values, key))) for key, pattern in self.text.items())
            and (not self.sections or any(isinstance(found, dict | list) for found in sections))
            and all(
                isinstance(found := values.get(key), dict) and keys & found.keys() for key, keys in self.within.items()
            )
        )


class _Configuration(_Part):
    name: str
    instead: str
    fits: tuple[_Signs, ...]


class _Text(_Part):
    name: str
    instead: str
    pattern: re.Pattern[str]


class _Unread(_Part):
    instead: dict[str, str]
    configuration: tuple[_Configuration, ...]
    remaining: tuple[_Configuration, ...]
    program: tuple[_Text, ...]
    launcher: tuple[_Text, ...]
    otherwise: tuple[_Text, ...]


@cache
def _table() -> _Unread:
    text = Path(__file__).with_name("unread.toml").read_text(encoding="utf-8")
    return _Unread.model_validate(tomllib.loads(text))


def refuse_mapping(kind: Literal["configuration", "remaining"], values: Mapping[str, Any], path: Path) -> None:
    """Raise UnreadError where a configuration is of one of these stacks: before, or after it is offered to readers."""
    known: tuple[_Configuration, ...] = getattr(_table(), kind)
    if found := next((one for one in known if any(signs.hold(values) for signs in one.fits)), None):
        raise refusal(found.name, found.instead, path)


def refusal_of_text(kind: Literal["program", "launcher", "otherwise"], text: str, path: Path) -> ConfigError | None:
    """Why a program in Python, a script by its command, or one that starts nothing that is read is none that is read;
    ``None`` where it is of no such stack."""
    known: tuple[_Text, ...] = getattr(_table(), kind)
    return next((refusal(one.name, one.instead, path) for one in known if one.pattern.search(text)), None)


def refusal(name: str, instead: str, path: Path) -> ConfigError:
    """Why a file is not read.

    Args:
        name: what it is.
        instead: what to give, or its name in the table.
        path: the file.
    """
    known = {key: text.format(shapes=SHAPES) for key, text in _table().instead.items()}
    article = "an" if name[0] in "AEIOUaeio" else "a"
    reason = f"is {article} {plain(name, 80)}, which is not read"
    return UnreadError(reason, where=str(path), hint=known.get(instead) or instead.format(**known))


def _at(values: Mapping[str, Any], dotted: str) -> Any:
    node: Any = values
    for key in dotted.split("."):
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


_READ = "MaxText, Megatron-LM, DeepSpeed, Accelerate or torchtitan"
_INSTEAD = (
    "give the configuration that it starts, or the model's config.json with --hardware, --batch, --sequence and --plan"
)
_SCRIPT = re.compile(r"[\w.-]{1,200}\.(?:sh|sbatch|slurm)\b")
_SHELLS = ("bash", "sh", "zsh", "exec", "nohup", "time", "sbatch", "srun", "sudo")
_ASSIGNED = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_FILLED = re.compile(r"\$\{?\w+\}?", re.ASCII)
_PROGRAM = re.compile(
    r"(?<![\w=-])(?:[\w./${}-]{0,400}/)?(?P<file>[\w-]{1,200}\.py)(?=[\s\"']|$)|\s-m\s+(?P<module>(?!torch\.)[\w.-]+)"
)
_STARTS = re.compile(
    r"(?:^|[\s/;&(])(?:torchrun|python3?|accelerate|deepspeed|llamafactory-cli|axolotl|swift|megatron|composer|litgpt"
    r"|tune)\s",
    re.MULTILINE,
)
"""What a command begins with that starts a training."""
_TEST = re.compile(r"^[ \t]*(?:if|elif)\s+(.*?)(?:;|$)", re.MULTILINE)
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)", re.ASCII)
_PRINTED = re.compile(r"\$\(.*\)|`.*`", re.DOTALL)
_MOST_LISTED = 4
_TRAINS = re.compile(
    r"^(?!.*(?:convert|ckpt)).*(?:train|tune|sft|cpt|recipe|bench|llama|gpt|qwen|deepseek|mi[sx]tral|olmo|moe)"
)


def refuse_script(text: str, path: Path) -> ConfigError:
    """Why a script is not read, and what to give.

    Args:
        text: of the script.
        path: its file.

    Raises:
        ConfigError: its program does something else than train all parameters of a decoder on tokens.
    """
    commands = list(_commands(text))
    if (known := refusal_of_text("otherwise", "\n".join(command.text for command in commands), path)) is not None:
        return known
    named = (path.parent / name for name in _SCRIPT.findall(text) if name != path.name)
    other = next((script.name for script in named if is_file(script) and ".py" in read_text(script)), None)
    calls = [name for name in map(_called, commands) if name]
    missing = next(filter(_TRAINS.search, reversed(calls)), calls[-1] if calls else None)
    program, start = next(((name, each) for each in commands if (name := _program(each))), (None, None))
    if program and start:
        check_program(program, path)
        check_arguments({one.name: one.words[0] if one.words else True for one in options(start.text)}, path)
    reason, hint = f"has no command of {_READ}", _INSTEAD
    if any(not command.certain and starts_launcher(command.text) for command in read_commands(text)):
        undecided = _undecided(text)[:_MOST_LISTED]
        listed = f": it hangs on {plain(', '.join(undecided), 120)}, which only a run can tell" if undecided else ""
        reason += f" that is sure to run{listed}"
        hint = f"add {' '.join(f'{plain(name, 40)}=…' for name in undecided)}" if undecided else hint
    elif other:
        hint = f"give {plain(other, 60)}, which it names"
    elif program:
        reason += f": it starts {plain(program, 60)}, whose settings are not known"
    elif missing:
        there = find_named(missing, path) is not None
        hint = f"give {plain(missing.rpartition('/')[2], 60)}, which it hands over to"
        hint += "" if there else " and which is not beside it"
    if (line := unread_line(text)) is not None:
        reason += f"; what begins in line {line} is no syntax of bash that is read"
    return UnreadError(reason, where=str(path), hint=hint)


def check_evaluated(text: str, path: Path) -> None:
    """Raise UnreadError where a script puts the command together that starts its run: ``eval "$COMMAND"``."""
    evaluated = (command for command in read_commands(text) if command.text == EVALUATED)
    start = next((each for each in evaluated if _STARTS.search(" ".join(words(_PRINTED.sub("", each.written))))), None)
    if start is not None:
        raise UnreadError("starts its run by eval, which is not read", where=f"{path}:{start.line}")


def _undecided(text: str) -> list[str]:
    """Variables in conditions of a script that it sets to what only a run can tell: ``$(nvidia-smi -L | wc -l)``."""
    tested = dict.fromkeys(name for test in _TEST.findall(text) for name in _VARIABLE.findall(test))
    commands = list(read_commands(text))
    known = commands[-1].scope.variables if commands else {}
    return [name for name in tested if name in known and has_substitution(known[name] or "$")]


def _commands(text: str) -> Iterator[Command]:
    for command in read_commands(text):
        if not command.assigns:
            yield command
            yield from commands_within(command)


def _called(command: Command) -> str | None:
    """The script that a command hands over to, by its path."""
    said = words(command.text)
    before = (word for word in said if not (_ASSIGNED.match(word) or _FILLED.fullmatch(word) or word[:1] == "-"))
    first = next((word for word in before if word not in _SHELLS), "")
    name = first.rpartition("/")[2]
    return below_variable(first) if name.endswith(SCRIPTS) and not has_substitution(name) else None


def _program(command: Command) -> str | None:
    """The program that a command starts on several devices, or that trains by its name."""
    found = _PROGRAM.search(command.text)
    name = (found["file"] or found["module"]) if found else None
    return name if name and (starts_launcher(command.text) or _TRAINS.search(name)) else None
