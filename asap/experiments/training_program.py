"""The program that a script starts: whether it trains a decoder on tokens, by its name."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain

OTHER_METHODS = re.compile(
    r"(?:^|[_\W])(?:dpo|grpo|ppo|kto|orpo|cpo|bco|rloo|gkd|gold|prm|xpo|nash\w*|simpo|ipo|reward\w*|rm|distil(?:l\w*|ation)?|"
    r"online\w*|rlhf|rl)(?![a-z])",
    re.IGNORECASE,
)
_OTHER_MODELS = re.compile(
    r"distilbert|dreambooth|text_to_image|t2i|controlnet|sdxl|diffusion|unconditional|whisper|speech|asr|wav2vec|image|vision|vit|"
    r"vlm|mlm|(?:^|[^a-z])m?t5|bart(?![a-z])|marian|glue|squad|_qa|_ner|summari[sz]ation|translation|seq2seq|embed\w*|lora",
    re.IGNORECASE,
)
METHODS = ("loss", "method", "algorithm", "objective", "stage")
"""Arguments that name the method of a program which has several."""
_OF_OTHER_METHODS = frozenset[str](("max_prompt_length", "num_generations", "reward_funcs", "beta", "vllm_mode"))
_OF_REWARDS = re.compile(
    r"(?:^|_)(?:ppo|grpo|dpo|kto|orpo|rloo|simpo|asft|rewards?|rollouts?|critic|kl_(?:coef|ctl|ctrl|loss)|"
    r"(?:value|ref|reference)_model)(?:_|$)"
)
"""In names of arguments that compare answers, or score them."""
_OFF = ("", "0", "0.0", "false", "none")
_LOSSES, _LOSS = ("nll", "chunked_nll", "dft", "cross_entropy", "channel_loss"), "loss_type"
"""Of supervised fine-tuning (trl, ``SFTConfig``; ms-swift, ``plugin/loss.py``); others compare answers."""
_OF_OTHER_MODELS = frozenset(("max_source_length", "mlm_probability", "source_prefix"))
"""Of encoders, and of decoders beside one (transformers, ``examples/pytorch``)."""
_OF_IMAGES = frozenset(
    (
        "vision_tower",
        "mm_vision_tower",
        "mm_projector_type",
        "mm_tunable_parts",
        "pretrain_mm_mlp_adapter",
        "image_folder",
    )
)
"""Of a language model with an encoder of images (LLaVA, ``train.py``)."""
_OF_EMBEDDINGS = frozenset(("negatives_cross_device", "train_group_size", "query_max_len", "passage_max_len"))
"""Of training on pairs of texts (FlagOpen/FlagEmbedding, ``arguments.py``; ContextualAI/gritlm, whose ``mode`` may
leave it out)."""
_MODE, _OF_TOKENS = "mode", "generative"
_OTHER_FRAMEWORKS = re.compile(
    r"(?:^|[_\W])(?:flax|jax|tf|tensorflow|keras|paddle|mindspore|mlx|xla)(?![a-z])", re.IGNORECASE
)
_NO_TRAINING = re.compile(
    r"(?:^|[_\W])(?:eval\w*|generate\w*|inference|infer|predict\w*|serve\w*|sample|analy[sz]e\w*|preprocess\w*|"
    r"tokeni[sz]e\w*|convert\w*|export\w*|merge\w*|quantize\w*)(?![a-z])"
)
_AND_MORE = re.compile(r"(?:train|tune|sft)_(?:and|then|n|with)_[a-z]")
"""A program that trains first: ``train_and_evaluate.py``."""
_OWN_PARALLELISM = re.compile(
    r"(?:(?:tensor|pipeline|expert)_)?(?:tensor|pipe|pipeline|context|sequence|expert|model|ulysses|ring)_?parallel\w*|"
    r"parallel_mode|(?:use_)?pipeline(?:_stages)?|(?:num|n)_(?:pipeline_)?stages|"
    r"(?:mp|tp|pp|cp|sp|ep)(?:_size|_degree)?"
)
_WHOLE = ("0", "1", "false", "none", "data_parallel", "ddp", "dp", "fsdp")
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
    for pattern, reason in (
        (_NO_TRAINING, "does not train"),
        (OTHER_METHODS, "trains by another method than the prediction of tokens"),
        (_OTHER_FRAMEWORKS, "runs on another framework than PyTorch"),
        (_OTHER_MODELS, "trains another model than a decoder, or a part of it"),
    ):
        if pattern is _NO_TRAINING and _AND_MORE.search(name):
            continue
        settles = pattern is _OTHER_MODELS and "lora" not in name.casefold()
        if not pattern.search(name) or (model_said and settles):
            continue
        said = "add model=NAME if it trains all of that decoder" if settles else _READ
        raise ConfigError(f"starts {plain(name, 60)}, which by its name {reason}", where=str(path), hint=said)


def check_method(arguments: Mapping[str, Any], path: Path) -> None:
    """Raise ConfigError where arguments are those of training on preferences or rewards, or tell a program to split its
    model over devices by code of its own."""
    degrees = (key for key in arguments if _OWN_PARALLELISM.fullmatch(key))
    splits = next((key for key in degrees if str(arguments[key]).casefold() not in _WHOLE), None)
    if splits is not None:
        reason = f"{plain(splits, 40)} is an argument of a program that splits its model itself, which is not read"
        raise ConfigError(reason, where=str(path), hint="give the model, --hardware, --batch, --sequence and --plan")
    if images := sorted(_OF_IMAGES & set(arguments)):
        reason = f"{images[0]} is an argument of training with an encoder of images, which is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains a decoder alone")
    if others := sorted(_OF_OTHER_MODELS & set(arguments)):
        reason = f"{others[0]} is an argument of training an encoder, which is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains a decoder alone")
    if (pairs := sorted(_OF_EMBEDDINGS & set(arguments))) and arguments.get(_MODE) != _OF_TOKENS:
        reason = f"{pairs[0]} is an argument of training embeddings on pairs of texts, which is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
    found = sorted(_OF_OTHER_METHODS & set(arguments))
    found += [key for key in arguments if _OF_REWARDS.search(key) and str(arguments[key]).casefold() not in _OFF]
    found += [key for key in METHODS if OTHER_METHODS.search(str(arguments.get(key, "")))]
    if str(arguments.get(_LOSS) or _LOSSES[0]) not in _LOSSES:
        found.append(_LOSS)
    if found:
        reason = f"{found[0]} is an argument of training on preferences or rewards, which is not modelled"
        raise ConfigError(reason, where=str(path), hint="give a run that trains on tokens")
