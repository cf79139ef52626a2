"""Accelerate's settings that arguments of the Trainer stand for."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.documents import parse_document
from asap.experiments.files.named_file import Brought, find_named, missing
from asap.stacks.accelerate.stack import FSDP, OPTION, WORDS, is_fsdp, of_option
from asap.stacks.stack_settings import StackSettings

_CONFIG, ACCELERATOR, _EACH = "fsdp_config", "accelerator_config", "sync_each_batch"
_WORD = re.compile(r"\w+", re.ASCII)
_ON, _OFF = ("true", "1"), ("", "false", "none", "0")
_PREFIX = "fsdp_"
_VARIABLE = "FSDP_SHARDING_STRATEGY"
"""Of the environment (accelerate, ``FullyShardedDataParallelPlugin``), which the Trainer leaves as it is where its
option names no strategy."""


def of_trainer(
    stated: Mapping[str, Any], path: Path, brought: Brought, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Accelerate's settings, by dotted key, that arguments of the Trainer stand for.

    Args:
        told: arguments by name.
        path: the file that says them.
        brought: files that come along with it.
        environment: variables of the run, which say a strategy that the option leaves out.

    Raises:
        ConfigError: the option has a word that the Trainer has not, or the file that is named is not there.
    """
    said = stated.get(OPTION)
    text = " ".join(map(str, said)) if isinstance(said, list) else str(said or "").casefold()
    words = [] if text in _OFF else [WORDS[0]] if text in _ON else _WORD.findall(text.casefold())
    if unknown := next((word for word in words if word not in (*WORDS, "offload", "auto_wrap")), None):
        known = ", ".join((*WORDS, "offload", "auto_wrap"))
        raise ConfigError(f"{OPTION} has no option {plain(unknown, 40)}", where=str(path), hint=f"known are {known}")
    settings = of_option(" ".join(words), _strategy_in(environment or {}))
    if not is_fsdp(settings) or stated.get(_CONFIG) is None:
        return settings
    own = _configuration(stated, _CONFIG, path, brought)
    return settings | {f"{FSDP}.{_PREFIX}{key.removeprefix(_PREFIX)}": value for key, value in own.items()}


def _strategy_in(environment: Mapping[str, str]) -> str:
    """What a variable says, by name or by its number from 1 on; all is sharded by default."""
    text = environment.get(_VARIABLE, "").casefold()
    number = int(text) - 1 if text.isascii() and text.isdecimal() and len(text) == 1 else 0
    return text if text in WORDS else WORDS[number] if 0 <= number < len(WORDS) else WORDS[0]


def syncs_each_batch(said: StackSettings, path: Path, brought: Brought) -> bool | None:
    """Whether gradients are scattered in every microbatch (``accelerator_config``); ``None`` where it is not said.

    Raises:
        ConfigError: it is no truth value, or the file that is named is not there.
    """
    if ACCELERATOR not in said:
        return None
    kwargs = _configuration(said, ACCELERATOR, path, brought).get("gradient_accumulation_kwargs")
    inner = StackSettings(kwargs if isinstance(kwargs, Mapping) else {}, str(path))
    return inner.flag(_EACH) if _EACH in inner else None


def _configuration(stated: Mapping[str, Any], key: str, path: Path, brought: Brought) -> Mapping[str, Any]:
    """A mapping of an argument: itself, as JSON, or in the file that it names."""
    said = stated[key]
    if isinstance(said, Mapping):
        return said
    text = str(said).strip()
    if text.startswith("{"):
        return parse_document(text, path / f"{key}.json").values
    found = find_named(text, path, brought)
    if found is None:
        raise missing(f"names the {key}", text, path, "lay it beside the file")
    return found.document().values
