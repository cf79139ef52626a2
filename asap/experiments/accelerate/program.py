"""Arguments of the program that Accelerate starts: those of a file that they name, and what they tell of its method."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.named_file import Brought, find_named
from asap.experiments.training_program import OTHER_METHODS, check_whole_model

CONFIG = "config"
"""The argument of a program that names a YAML of further ones (TRL's ``TrlParser``)."""
_OF_OTHER_METHODS = frozenset[str](("max_prompt_length", "num_generations", "reward_funcs", "beta", "vllm_mode"))
_LOSSES, _LOSS = ("nll", "chunked_nll", "dft"), "loss_type"
"""Of supervised fine-tuning (trl, ``SFTConfig``); others compare answers."""


def with_file(arguments: Mapping[str, Any], path: Path, brought: Brought | None = None) -> dict[str, Any]:
    """Arguments over those of the YAML that they name.

    Raises:
        ConfigError: it is not there, or not a mapping.
    """
    named = arguments.get(CONFIG)
    if not isinstance(named, str) or not named.endswith((".yaml", ".yml", ".json")):
        return dict(arguments)
    found = find_named(named, path, brought)
    if found is None:
        reason = f"names the arguments in {plain(named, 80)}, which is not there"
        raise ConfigError(reason, where=str(path), hint="lay it beside the file")
    return {**found.document().values, **{key: value for key, value in arguments.items() if key != CONFIG}}


METHODS = ("loss", "method", "algorithm", "objective", "stage")
"""Arguments that name the method of a program which has several."""


def check_method(arguments: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where arguments are those of training on preferences or rewards, or of a program that splits
    the model itself."""
    check_whole_model(arguments, path)
    found = sorted(_OF_OTHER_METHODS & set(arguments))
    found += [key for key in METHODS if OTHER_METHODS.search(str(arguments.get(key, "")))]
    if str(arguments.get(_LOSS) or _LOSSES[0]) not in _LOSSES:
        found.append(_LOSS)
    if found:
        reason = f"{found[0]} is an argument of training on preferences or rewards, which is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
