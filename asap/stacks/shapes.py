"""The decoder that settings describe, by a table: fields that they say, that its kind implies, and that follow."""

import math
from fractions import Fraction
from typing import Any

from asap.core.errors import ConfigError
from asap.core.numbers import digits
from asap.core.text import plain
from asap.models import find_architecture
from asap.models.catalogue import find_base
from asap.stacks.rules import are_said
from asap.stacks.spec import Model
from asap.stacks.stack_settings import StackSettings
from asap.stacks.words import Meaning, Words

_OF_EXPERTS = (
    "experts", "experts_per_token", "expert_d_ff", "shared_experts", "leading_dense_layers", "moe_every",
)  # fmt: skip
_EXPONENT = 3
"""Characters of an exponent, at most."""


def shapes_of(table: Model, settings: StackSettings, kind: str | None) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields of an architecture, and the settings that say some of them.

    Args:
        table: what settings are called, and what kinds of models imply.
        settings: under these names.
        kind: of model, by default the first.

    Raises:
        ConfigError: a value is of the wrong kind.
    """
    fields: dict[str, Any] = {**table.families.get(kind or next(iter(table.families), ""), {})}
    said_by: dict[str, str] = {}
    for field, words in table.shapes.items():
        value, key = _decided(words, settings)
        if value is not None:
            fields[field], said_by[field] = value, key
    vocabulary = table.vocabulary.said(settings) if table.vocabulary and "vocab" not in fields else None
    named = find_architecture(vocabulary) or find_base(vocabulary) if vocabulary else None
    fields |= {"vocab": named.vocab} if named is not None and named.vocab else {}
    heads, width = (digits(str(fields.get(name))) for name in ("heads", "d_model"))
    fields.setdefault("kv_heads", heads)
    if heads and width and not width % heads and "kv_lora_rank" not in fields:
        fields.setdefault("head_dim", width // heads)
    try:
        fields.setdefault("d_ff", _width(table, settings, width))
        tokens = _number(table.tokens, settings)
        fields.setdefault("vocab", padded(table, settings, int(tokens)) if tokens else None)
    except (ValueError, ZeroDivisionError) as error:
        raise ConfigError(f"a size of the model is no number: {plain(error, 100)}", where=settings.where()) from error
    dense = digits(str(fields.get("experts", 0))) in (0, 1)
    fields.setdefault("expert_d_ff", fields["d_ff"])
    left_out = {*(_OF_EXPERTS if dense else ()), *(() if "sliding_window" in fields else ("global_layer_every",))}
    known = {field: value for field, value in fields.items() if value is not None and field not in left_out}
    return known, {field: key for field, key in said_by.items() if field in known}


def said_of(words: Words, settings: StackSettings) -> Meaning | None:
    """What the first of some words says that is said; raises ConfigError where it is of the wrong kind."""
    return _decided(words, settings)[0]


def _decided(words: Words, settings: StackSettings) -> tuple[Meaning | None, str]:
    for word in words:
        key = word.key(settings)
        try:
            found = word.meaning(settings)
        except ValueError as error:
            raise settings.wrong(key, str(error)) from error
        several = isinstance(settings.get(key), list | dict) and are_said(word.when, settings)
        if found is not None or (several and word.counts):
            return settings.whole(key) if word.counts and key in settings else found, key
    return None, ""


def _number(words: Words, settings: StackSettings) -> Fraction | None:
    """As it is written, ``2/3`` or ``1e-3``; raises ValueError where its digits could fill the memory."""
    text = str(said_of(words, settings) or "")
    if len(text.casefold().partition("e")[2]) > _EXPONENT:
        raise ValueError(text)
    return Fraction(text) if text else None


def _width(table: Model, settings: StackSettings, width: int | None) -> int | None:
    """Of an MLP whose own is not said."""
    said, ratio = _number(table.width.said, settings), _number(table.width.ratio, settings)
    inner = said or (int(ratio * width) if ratio and width else 0)
    for factor in (table.width.share, table.width.scale):
        inner = int(inner * (_number(factor, settings) or 1))
    multiple = int(_number(table.width.multiple, settings) or 1)
    return (inner // multiple if table.width.down else -(-inner // multiple)) * multiple or None


def padded(table: Model, settings: StackSettings, tokens: int) -> int:
    """A vocabulary of so many tokens as it is padded."""
    multiple = math.prod(int(_number((one,), settings) or 1) for one in table.padding)
    return -(-tokens // multiple) * multiple
