"""Why a file or a script is not read (``unread.toml`` has known stacks), with what to give instead; and whether what it
starts trains a decoder on tokens, by the program's name and by its arguments."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from asap.core.errors import ConfigError, UnreadError
from asap.core.text import plain
from asap.experiments.files.documents import below_variable
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
from asap.models.architecture import SHAPES
from asap.stacks.registry import spec
from asap.stacks.rules import are_said
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import StackSettings, dotted


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Signs(_Part):
    beside: dict[str, str] = {}
    any: frozenset[str] = frozenset()
    least: int = 0

    def hold(self, values: Mapping[str, Any], flat: Mapping[str, Any]) -> bool:
        """Whether a mapping has all of them."""
        return len(self.any & values.keys()) >= self.least and are_said(self.beside, flat)


class _Configuration(_Part):
    instead: str
    fits: tuple[_Signs, ...]


class _Unread(_Part):
    instead: dict[str, str]
    configuration: dict[str, _Configuration]
    remaining: dict[str, _Configuration]
    program: dict[str, tuple[str, re.Pattern[str]]]
    launcher: dict[str, tuple[str, re.Pattern[str]]]
    otherwise: dict[str, tuple[str, re.Pattern[str]]]


@cache
def _table() -> _Unread:
    text = Path(__file__).with_name("unread.toml").read_text(encoding="utf-8")
    return _Unread.model_validate(tomllib.loads(text))


def refuse_mapping(kind: Literal["configuration", "remaining"], values: Mapping[str, Any], path: Path) -> None:
    """Raise UnreadError where a configuration is of one of these stacks: before, or after it is offered to readers."""
    known: Mapping[str, _Configuration] = getattr(_table(), kind)
    flat = {**dict.fromkeys(values, True), **{key: str(value) for key, value in dotted(values).items()}}
    for name, one in known.items():
        if any(signs.hold(values, flat) for signs in one.fits):
            raise refusal(name, one.instead, path)


def refusal_of_text(kind: Literal["program", "launcher", "otherwise"], text: str, path: Path) -> ConfigError | None:
    """Why a program in Python, a script by its command, or one that starts nothing that is read is none that is read;
    ``None`` where it is of no such stack."""
    known: Mapping[str, tuple[str, re.Pattern[str]]] = getattr(_table(), kind)
    found = (refusal(name, instead, path) for name, (instead, pattern) in known.items() if pattern.search(text))
    return next(found, None)


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


_READ = "MaxText, Megatron-LM, DeepSpeed, Accelerate or torchtitan"
_INSTEAD = (
    "give the configuration that it starts, or the model's config.json with --hardware, --batch, --sequence and --plan"
)
_PROGRAM = re.compile(
    r"(?<![\w=-])(?:[\w./${}-]{0,400}/)?(?P<file>[\w-]{1,200}\.py)(?=[\s\"']|$)|\s-m\s+(?P<module>(?!torch\.)[\w.-]+)"
)
_STARTS = re.compile(
    r"(?:^|[\s/;&(])(?:torchrun|python3?|accelerate|deepspeed|llamafactory-cli|axolotl|swift|megatron|composer|litgpt"
    r"|tune)\s",
    re.MULTILINE,
)
"""What a command begins with that starts a training."""
_PRINTED = re.compile(r"\$\(.*\)|`.*`", re.DOTALL)
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
    scripts = (next((word for word in words(each.text) if word.endswith(SCRIPTS)), "$") for each in commands)
    calls = [below_variable(name) for name in scripts if not has_substitution(name.rpartition("/")[2])]
    called = next(filter(_TRAINS.search, reversed(calls)), calls[-1] if calls else None)
    program, start = next(((name, each) for each in commands if (name := _program(each))), (None, None))
    if program and start:
        check_program(program, path)
        check_arguments({one.name: one.words[0] if one.words else True for one in options(start.text)}, path)
    reason, hint = f"has no command of {_READ}", _INSTEAD
    if any(not command.certain and starts_launcher(command.text) for command in read_commands(text)):
        reason += " that is sure to run: it hangs on what only a run can tell"
    elif program:
        reason += f": it starts {plain(program, 60)}, whose settings are not known"
    elif called:
        hint = f"give {plain(called.rpartition('/')[2], 60)}, which it hands over to"
    if (line := unread_line(text)) is not None:
        reason += f"; what begins in line {line} is no syntax of bash that is read"
    return UnreadError(reason, where=str(path), hint=hint)


def check_evaluated(text: str, path: Path) -> None:
    """Raise UnreadError where a script puts the command together that starts its run: ``eval "$COMMAND"``."""
    evaluated = (command for command in read_commands(text) if command.text == EVALUATED)
    start = next((each for each in evaluated if _STARTS.search(" ".join(words(_PRINTED.sub("", each.written))))), None)
    if start is not None:
        raise UnreadError("starts its run by eval, which is not read", where=f"{path}:{start.line}")


def _commands(text: str) -> Iterator[Command]:
    for command in read_commands(text):
        if not command.assigns:
            yield command
            yield from commands_within(command)


def _program(command: Command) -> str | None:
    """The program that a command starts on several devices, or that trains by its name."""
    found = _PROGRAM.search(command.text)
    name = (found["file"] or found["module"]) if found else None
    return name if name and (starts_launcher(command.text) or _TRAINS.search(name)) else None


_BY_NAME = tomllib.loads(Path(__file__).with_name("training_program.toml").read_text(encoding="utf-8"))["program"]
METHODS = ("loss", "method", "algorithm", "objective", "stage")
"""Arguments that name the method of a program which has several."""
_TRAINING = "read are programs that train all parameters of a decoder on tokens"
_ANYONES = re.compile(r"(?:main|train|run|finetune|__main__)\.py")


def check_program(program: str, path: Path, model_said: bool = False) -> None:
    """Raise ConfigError where a program is known to do something else than train a decoder on tokens: by its name, or
    by that of its folder where its own is any program's.

    Args:
        program: its file or module.
        path: the file that starts it.
        model_said: whether the user says the model, which then is what it trains.

    Raises:
        ConfigError: it does.
    """
    parts = program.rsplit("/", 2)
    name = "/".join(parts[-2:]) if _ANYONES.fullmatch(parts[-1]) else parts[-1]
    for one in _BY_NAME:
        settles, unless = one.get("settled", False), one.get("unless")
        if not re.search(one["pattern"], name) or (unless and re.search(unless, name)) or (model_said and settles):
            continue
        said = "add model=NAME if it trains all of that decoder" if settles else _TRAINING
        raise ConfigError(f"starts {plain(name, 60)}, which by its name {one['reason']}", where=str(path), hint=said)


def check_arguments(arguments: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where arguments are those of training a part of the parameters other than low-rank adapters, or
    on preferences or rewards, or tell a program to split its model over devices by code of its own; what a variable may
    turn off is left open."""
    table = spec("trainer")
    parts = [one for one in table.refused if one.reason == _IN_PART]
    left = {key for key, value in arguments.items() if has_substitution(str(value))}
    left = {key for key in left if any(one.forbids(key, "true") for one in parts)}
    said = {key: value for key, value in arguments.items() if key not in left}
    refuse(table, StackSettings(said, str(path)))


_IN_PART = "training a part of the parameters"


def refuse(table: Spec, settings: StackSettings) -> None:
    """Raise ConfigError where settings are those that a table refuses."""
    for refusal in table.refused:
        forbidden = (key for key in settings if refusal.forbids(key, settings[key]))
        if (key := next(forbidden, None)) is not None and are_said(refusal.when, settings):
            if refusal.must:
                raise settings.wrong(key, refusal.must)
            reason = f"{plain(key, 60)}: {plain(str(settings[key]), 40)}: {refusal.reason}, which is not modelled"
            raise ConfigError(reason, where=settings.where(key), hint=refusal.hint)
