"""Ways to train that YAML of NeMo and Megatron-Bridge says and that take another step than the prediction of tokens by
all parameters: adapters (``peft``), distillation (``teacher``, ``kd_config``), preferences (NeMo-Aligner)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain

_ADAPTERS, _SCHEME, _NONE = "peft", "peft_scheme", "none"
_HINT = "give a run that trains all parameters on tokens"
_DISTILLATION = "distils another model: the step of its teacher is not modelled"
_PREFERENCES = "trains on preferences or rewards, which is not modelled"
_OF_MODEL = {
    "teacher": _DISTILLATION,
    "kd_config": _DISTILLATION,
    **dict.fromkeys(("dpo", "kto", "ppo", "spin", "reinforce", "reward_model_type"), _PREFERENCES),
}


def check_method(values: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where a configuration trains adapters, distils a model, or trains on preferences."""
    model = values["model"]
    if scheme := _scheme(values.get(_ADAPTERS)) or _scheme(model.get(_ADAPTERS)):
        reason = f"{_ADAPTERS} is {plain(scheme, 40)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=str(path), hint=_HINT)
    if found := next((key for key in _OF_MODEL if model.get(key) is not None), None):
        raise ConfigError(f"model.{found}: {_OF_MODEL[found]}", where=str(path), hint=_HINT)


def _scheme(said: Any) -> str | None:
    """What adapters are called: a word, or a mapping with its scheme (NeMo) or its class (Megatron-Bridge)."""
    if isinstance(said, Mapping):
        if _SCHEME in said:
            return _scheme(said[_SCHEME])
        return str(said.get("_target_", "said")).rpartition(".")[2] if said else None
    return None if str(said).casefold() in ("", _NONE, "false") else str(said)
