"""The program that Accelerate starts: whether it trains a decoder on tokens, and its arguments."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.named_file import Brought, find_named

CONFIG = "config"
"""The argument of a program that names a YAML of further ones (TRL's ``TrlParser``)."""
_OTHER_METHODS = re.compile(
    r"(?:^|[_\W])(?:dpo|grpo|ppo|kto|orpo|cpo|bco|rloo|gkd|gold|prm|xpo|nash\w*|simpo|ipo|reward\w*|rm|distil\w*|"
    r"online\w*|rlhf)(?![a-z])",
    re.IGNORECASE,
)
_OTHER_MODELS = re.compile(
    r"dreambooth|text_to_image|t2i|controlnet|sdxl|diffusion|unconditional|whisper|speech|asr|wav2vec|image|vision|vit|"
    r"vlm|mlm|glue|squad|_qa|_ner|summari[sz]ation|translation|seq2seq|embed\w*|lora",
    re.IGNORECASE,
)
_NO_TRAINING = re.compile(r"(?:^|[_\W])(?:eval\w*|generate\w*|inference|infer|predict\w*|serve\w*|sample)(?![a-z])")
_OWN_PARALLELISM = re.compile(
    r"(?:tensor|pipeline|context|sequence|expert|model|ulysses|ring)_?parallel\w*|(?:tp|pp|cp|sp|ep)(?:_size|_degree)?"
)
_OF_OTHER_METHODS = frozenset[str](("max_prompt_length", "num_generations", "reward_funcs", "beta", "vllm_mode"))
_LOSSES, _LOSS = ("nll", "chunked_nll", "dft"), "loss_type"
"""Of supervised fine-tuning (trl, ``SFTConfig``); others compare answers."""


def check_program(program: str, path: Path) -> None:
    """Raise ConfigError where a program is known to do something else than train a decoder on tokens."""
    name = program.rpartition("/")[2]
    for pattern, reason in (
        (_NO_TRAINING, "does not train"),
        (_OTHER_METHODS, "trains by another method than the prediction of tokens"),
        (_OTHER_MODELS, "trains another model than a decoder, or a part of it"),
    ):
        if pattern.search(name):
            raise ConfigError(
                f"starts {plain(name, 60)}, which by its name {reason}",
                where=str(path),
                hint="read are programs that train all parameters of a decoder on tokens",
            )


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


def check_method(arguments: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where arguments are those of training on preferences or rewards, or of a program that splits
    the model itself."""
    splits = next((key for key in arguments if _OWN_PARALLELISM.fullmatch(key)), None)
    if splits is not None and str(arguments[splits]).casefold() not in ("0", "1", "false", "none"):
        reason = f"{plain(splits, 40)} is an argument of a program that splits its model itself, which is not read"
        raise ConfigError(reason, where=str(path), hint="give the model, --hardware, --batch, --sequence and --plan")
    found = sorted(_OF_OTHER_METHODS & set(arguments))
    if str(arguments.get(_LOSS) or _LOSSES[0]) not in _LOSSES:
        found.append(_LOSS)
    if found:
        reason = f"{found[0]} is an argument of training on preferences or rewards, which is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
