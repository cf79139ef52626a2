"""The program that a script starts: whether it trains a decoder on tokens, by its name."""

import re
from pathlib import Path

from asap.core.errors import ConfigError
from asap.core.text import plain

OTHER_METHODS = re.compile(
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
_ANY = re.compile(r"(?:main|train|run|finetune|__main__)\.py")


def check_program(program: str, path: Path) -> None:
    """Raise ConfigError where a program is known to do something else than train a decoder on tokens: by its name, or
    by that of its folder where its own is any program's."""
    parts = program.rsplit("/", 2)
    name = "/".join(parts[-2:]) if _ANY.fullmatch(parts[-1]) else parts[-1]
    for pattern, reason in (
        (_NO_TRAINING, "does not train"),
        (OTHER_METHODS, "trains by another method than the prediction of tokens"),
        (_OTHER_MODELS, "trains another model than a decoder, or a part of it"),
    ):
        if pattern.search(name):
            raise ConfigError(
                f"starts {plain(name, 60)}, which by its name {reason}",
                where=str(path),
                hint="read are programs that train all parameters of a decoder on tokens",
            )
