"""The model of a torchtune configuration: ``_component_: torchtune.models.llama3_1.llama3_1_8b``."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from asap.experiments.named_model import NO_MODEL, read_named_model
from asap.experiments.settings.stack_settings import StackSettings
from asap.models import Architecture, find_architecture

_COMPONENT = "_component_"
_SHAPES = ("num_layers", "num_heads", "embed_dim", "vocab_size")
_KIND = re.compile(r"[-_](?:base|instruct)$")
_MOST_NUMBERS = 4


def component(value: Any) -> str:
    """The dotted name of what a setting is made of."""
    return str(value.get(_COMPONENT, "")) if isinstance(value, Mapping) else str(value or "")


def torchtune_model(said: Any, settings: StackSettings) -> tuple[Architecture | None, tuple[str, ...]]:
    """The architecture by the name of its builder, or by the shapes that it is given; with notes."""
    given = StackSettings(said, settings.where()) if isinstance(said, Mapping) else settings
    if all(key in given for key in _SHAPES):
        return _of_shapes(given), ()
    named = str(settings.get(f"model.{_COMPONENT}") or component(said)).rpartition(".")[2]
    if not named:
        return None, (NO_MODEL,)
    known = [name for name in _spellings(named) if find_architecture(name) is not None]
    return read_named_model(known[0] if known else named)


def _spellings(builder: str) -> Iterator[str]:
    """Names that a builder may stand for, in which a number belongs to what is before it or after it:
    ``llama3_1_8b`` is ``llama3.1-8b``, ``qwen3_1_7b`` is ``qwen3-1.7b``."""
    parts = _KIND.sub("", builder).split("_")
    joints = [
        index for index in range(1, len(parts)) if parts[index][0:1].isdigit() and parts[index - 1][-1:].isdigit()
    ]
    for marks in product(".-", repeat=min(len(joints), _MOST_NUMBERS)):
        chosen = dict(zip(joints, marks, strict=False))
        yield "".join(part if not i else f"{chosen.get(i, '-')}{part}" for i, part in enumerate(parts))


def _of_shapes(said: StackSettings) -> Architecture:
    width, heads = said.count("embed_dim"), said.count("num_heads")
    return Architecture(
        layers=said.count("num_layers"),
        d_model=width,
        heads=heads,
        kv_heads=said.count("num_kv_heads", heads),
        head_dim=said.count("head_dim", width // heads if width and heads else None),
        d_ff=said.count("intermediate_dim"),
        vocab=said.count("vocab_size"),
        tied_embeddings=said.flag("tie_word_embeddings"),
    )
