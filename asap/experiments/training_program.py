"""The program that a script starts: whether it trains a decoder on tokens, by its name."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.shell import has_substitution
from asap.stacks.registry import spec
from asap.stacks.rules import are_said
from asap.stacks.spec import Spec
from asap.stacks.stack_settings import StackSettings

_BY_NAME = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["program"]
METHODS = ("loss", "method", "algorithm", "objective", "stage")
"""Arguments that name the method of a program which has several."""
_READ = "read are programs that train all parameters of a decoder on tokens"
_ANY = re.compile(r"(?:main|train|run|finetune|__main__)\.py")


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
    name = "/".join(parts[-2:]) if _ANY.fullmatch(parts[-1]) else parts[-1]
    for one in _BY_NAME:
        settles, unless = one.get("settled", False), one.get("unless")
        if not re.search(one["pattern"], name) or (unless and re.search(unless, name)) or (model_said and settles):
            continue
        said = "add model=NAME if it trains all of that decoder" if settles else _READ
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
            reason = f"{refusal.reason}, which is not modelled"
            raise _refusal(key, settings[key], reason, settings.where(key), refusal.hint)


def _refusal(key: str, value: object, reason: str, where: str, hint: str) -> ConfigError:
    return ConfigError(f"{plain(key, 60)}: {plain(str(value), 40)}: {reason}", where=where, hint=hint)
