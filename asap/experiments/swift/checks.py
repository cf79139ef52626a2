"""What ms-swift trains (modelscope/ms-swift, ``swift/llm/argument``): read is a decoder, trained whole on tokens."""

import re

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.settings.stack_settings import StackSettings

TUNERS = ("tuner_type", "train_type", "sft_type")
"""What is trained, as versions 4, 3 and 2 call it."""
_FROZEN = ("freeze_parameters", "freeze_parameters_regex")
_BESIDE_DECODER = re.compile(r"vit|vis|audio|align|project|merger|^(?:\[\]|none|null)?$", re.IGNORECASE)
"""In names of parameters of encoders that are trained beside a decoder."""
_CAUSAL = ("causal_lm", "none")


def check_trains_decoder(arguments: StackSettings, default: str) -> None:
    """Raise ConfigError where a part of the parameters is trained, or another model than a decoder of tokens.

    Args:
        arguments: by name.
        default: what is trained where no argument says it.
    """
    key = next((key for key in TUNERS if key in arguments), TUNERS[0])
    tuner = arguments.text(key, default) or default
    if tuner != "full":
        reason = f"{key}={plain(tuner, 20)}: training a part of the parameters is not modelled"
        raise ConfigError(reason, where=arguments.where(key), hint=f"give a run with {key} full")
    frozen = [word for key in _FROZEN for word in arguments.words(key) if not _BESIDE_DECODER.search(word)]
    share = str(arguments.get("freeze_parameters_ratio", 0)) not in ("0", "0.0")
    if arguments.flag("freeze_llm") or share or frozen:
        reason = "freezes parameters: training a part of them is not modelled"
        raise ConfigError(reason, where=arguments.where(), hint="give a run that trains all of them")
    if (task := arguments.text("task_type", _CAUSAL[0]) or "").casefold() not in _CAUSAL:
        reason = f"task_type={plain(task, 20)}: trains another model than a decoder of tokens"
        raise ConfigError(reason, where=arguments.where("task_type"), hint="give a run with task_type causal_lm")
