"""The model of a recipe of Megatron-Bridge: what it is named after, with the shapes that are laid over it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.files.python_literals import CLASS
from asap.experiments.megatron.bridge.script import model_of
from asap.experiments.megatron.changed_shapes import read_changed_model
from asap.models import Architecture

_OTHER = re.compile(
    r"mamba|(?<![a-z])ssm|nemotron_?h|nemotron_?3|nano_?v2|hybrid|zebra|t5|vlm?(?![a-z])|omni|llava|flux|wan_|diffusion|audio"
    r"|multimodal|bert|hyena|esm\d|(?:^|[_.])clip_",
    re.I,
)
"""In names of what is no decoder of text with attention in each layer."""


def read_model(said: Mapping[str, Any], where: str) -> tuple[Architecture, tuple[str, ...]]:
    """The model of a recipe, with notes.

    Raises:
        ConfigError: it has other layers than a decoder of attention and MLPs.
    """
    recipe, model = str(said[CLASS]), said.get("model")
    check_is_decoder((recipe.lstrip("_"),), where)
    return read_changed_model(model_of(recipe, None), model if isinstance(model, Mapping) else {})


def check_is_decoder(names: Iterable[str | None], where: str) -> None:
    """Raise ConfigError where a name says a model that has other layers than a decoder of attention and MLPs."""
    if other := next((text for text in names if text and _OTHER.search(text)), None):
        reason = f"trains {plain(other, 60)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=where)
