"""The decoder that torchtitan trains: behind a name and a flavor, in the JSON of a run, or as a log prints it."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.models import Architecture, find_architecture
from asap.models.architecture import SHAPES
from asap.stacks.registry import irrelevant, spec
from asap.stacks.shapes import shapes_of
from asap.stacks.spec import Model
from asap.stacks.stack_settings import StackSettings

_TABLE = tomllib.loads(Path(__file__).with_name("flavors.toml").read_text(encoding="utf-8"))
_CATALOGUE: dict[str, str] = _TABLE["catalogue"]
_OTHERS: dict[str, str] = _TABLE["others"]
_PRINTED = Model.model_validate(_TABLE["printed"])
_DEBUG_MODEL = Architecture.model_validate(_TABLE["debugmodel"])
_SAVED = {"layers": "model.n_layers", "d_model": "model.dim", "vocab": "model.vocab_size"}
_NAMES_OF_SHAPES = re.compile(
    r"(?:^|_)(?:moe|experts?|dim|heads?|kv|hidden|ffn|mlp|vocab\w*|layers?|window|depth|width|mtp|rank|quantizers?)(?:_|$)"
)
"""Names of what decides a model's shapes."""
_MOST = 8
VARIANT = re.compile(r"_(flex|varlen|irope|flex_attn|varlen_attn)(_attn)?$")
"""The kernel of attention that a flavor has in its name."""

Settings = Mapping[str, object]


def model_of(settings: StackSettings) -> tuple[Architecture | str, tuple[str, ...]]:
    """The model, or the name by which it is known, and notes."""
    name, flavor, hub = (
        str(settings.get(key) or "") for key in ("model.name", "model.flavor", "hf_transformers.model")
    )
    hub = hub or next((word for word in (flavor, name) if "/" in word), "")
    title = plain(hub or f"{name} {flavor}", 120)
    if own := own_settings(settings, of_shapes=True):
        note = f"the model is unknown: torchtitan has no {own}, which by its name changes {title}: add {SHAPES}"
        return Architecture(name=title), (note,)
    if hub and flavor.startswith("debug"):
        return Architecture(name=title), (f"flavor {plain(flavor, 40)} changes the model: it is unknown",)
    if hub:
        return hub, ()
    if not (name and flavor):
        return Architecture(), ("the model is unknown: the file has no model.name and model.flavor",)
    bare = VARIANT.sub("", flavor).casefold()
    catalogued = _CATALOGUE.get(name, "{}").format(bare)
    known = find_architecture(_OTHERS.get(catalogued, catalogued)) if name in _CATALOGUE else None
    known = _DEBUG_MODEL if bare == "debugmodel" and name == "llama3" else known
    found, notes = _add_saved(known.model_copy(update={"name": title}) if known else Architecture(name=title), settings)
    asked = f"the model {title} is not in the catalogue: add {SHAPES}"
    return found, notes if known else (*notes, asked)


def own_settings(settings: Settings, of_shapes: bool) -> str | None:
    """Settings that no torchtitan has and that by their name change the model's shapes, or those that do not."""
    own = {key: ".".join(key.split(".")[:2]) for key in settings if key.startswith(_SECTIONS)}
    shapes = {key for key in own if key.startswith("model.") and _NAMES_OF_SHAPES.search(key)}
    found = [key for key, name in own.items() if name not in _known() and of_shapes == (key in shapes)]
    return plain(", ".join(found[:_MOST]), 240) + (", …" if len(found) > _MOST else "") if found else None


_SECTIONS = ("model.", "parallelism.")


@cache
def _known() -> frozenset[str]:
    return spec("torchtitan").words | irrelevant("torchtitan")


def _add_saved(known: Architecture, settings: Settings) -> tuple[Architecture, tuple[str, ...]]:
    """The model with the layers, width and vocabulary of a run's JSON, which win over those of its flavor."""
    said = {field: settings.get(key) for field, key in _SAVED.items()}
    shapes = {field: value for field, value in said.items() if type(value) is int and value > 0}
    changed = {field: value for field, value in shapes.items() if getattr(known, field) != value}
    if not changed or known.layers is None:
        return known.model_copy(update=changed), ()
    note = f"the model has {', '.join(f'{field}={value}' for field, value in changed.items())}, unlike its flavor"
    if "d_model" in changed:
        return Architecture(name=known.name).model_copy(update=shapes), (f"{note}: its other shapes are unknown",)
    return known.model_copy(update=changed), (note,)


def printed_model(values: Mapping[str, Any], title: str) -> Architecture | None:
    """The model of all arguments that torchtitan has for it; ``None`` where they do not say all of it, or cannot be."""
    settings = StackSettings({key: value for key, value in values.items() if value != -1}, "")
    try:
        model = Architecture.model_validate({"name": title or None, **shapes_of(_PRINTED, settings, None)[0]})
    except (ConfigError, ValueError):
        return None
    return None if model.missing() else model


_OF_LAYER = {"param_init", "attention", "feed_forward", "attention_norm", "ffn_norm"}
_OF_DECODER = {"param_init", "dim", "vocab_size", "output", "tok_embeddings", "norm", "rope", "layers"}
_OF_ATTENTION = ("n_heads", "n_kv_heads", "head_dim")


def read_modules(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The modules of a dense decoder, as torchtitan printed them in the spring of 2026, as its arguments of before."""
    layers, others = values.get("layers"), {key for key, value in values.items() if value is not None} - _OF_DECODER
    if not isinstance(layers, list) or others - {"enable_weight_tying"}:
        return values
    found: list[dict[str, Any]] = []
    for layer in layers:
        try:
            attention, width = layer["attention"], layer["feed_forward"]["w1"]["out_features"]
            sizes = {name: attention[name] for name in _OF_ATTENTION} | {"qk_norm": attention["qk_norm"] is not None}
            found.append(sizes | {"hidden_dim": width})
            alike = found[-1] == found[0] and {key for key in layer if layer[key] is not None} <= _OF_LAYER
        except (KeyError, TypeError, AttributeError):
            return values
        if not alike:
            return values
    return {**values, "n_layers": len(layers), **found[0]} if found else values
