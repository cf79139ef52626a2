"""The model of a Python program of Megatron-Bridge: what its provider is named after, or the shapes that it says."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from asap.core.errors import ConfigError
from asap.core.text import plain
from asap.experiments.launch.python.objects import ARGUMENTS, CLASS, OWNER, UNKNOWN
from asap.experiments.megatron.architecture import architecture_of
from asap.experiments.megatron.bridge.program import FUNCTION, recipe_of
from asap.experiments.megatron.bridge.script import in_billions, model_of
from asap.experiments.megatron.changed_shapes import SHAPES, read_changed_model
from asap.experiments.named_model import read_named_model
from asap.experiments.settings.stack_settings import StackSettings
from asap.models import Architecture

_PROVIDER = re.compile(r"(?:^|\.)(?P<family>\w+?)(?:Model)?Provider(?P<size>\w*)$")
_FAMILY = re.compile(r"(?P<name>[a-z-]{1,80}?)(?P<major>\d?)(?P<minor>\d)?(?:moe)?$")
_BRIDGE = "AutoBridge.from_hf_"
_DECODER = {"gated_linear_unit": True, "share_embeddings_and_output_weights": False, "position_embedding_type": "rope"}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "gpt": {}, "llama": _DECODER, "llama3": {**_DECODER, "num_query_groups": 8}, "qwen2": _DECODER,
}  # fmt: skip
"""What classes without a size say themselves (``megatron/bridge/models``), where it is not NeMo's default."""
_NEEDED = ("num_layers", "hidden_size", "num_attention_heads")
_RENAMED = {"num_moe_experts": "num_experts"}
_OTHER = re.compile(
    r"mamba|(?<![a-z])ssm|nemotron_?h|nemotron_?3|nano_?v2|hybrid|zebra|t5|vlm?(?![a-z])|omni|llava|flux|wan_|diffusion|audio"
    r"|multimodal|bert|hyena|esm\d|(?:^|[_.])clip_",
    re.I,
)
"""In names of what is no decoder of text with attention in each layer."""


def read_model(said: Mapping[str, Any], where: str) -> tuple[Architecture | None, tuple[str, ...]]:
    """The model of a configuration, with notes; ``None`` where only a run can tell.

    Raises:
        ConfigError: it has other layers than a decoder of attention and MLPs.
    """
    found = said.get("model")
    model = found if isinstance(found, dict) else {}
    made_by = str(model.get(CLASS, ""))
    name = hugging_face_name(model) or (provider_name(made_by) if made_by else None)
    recipe = recipe_of(said).replace(".", "_").lstrip("_")
    check_is_decoder((name, made_by, recipe, said.get(FUNCTION)), where)
    if not made_by and found is not UNKNOWN:
        return read_changed_model(model_of(recipe, None), model)
    family = made_by and _family(made_by)
    if family in _DEFAULTS and all(isinstance(model.get(key), int) for key in _NEEDED):
        return _described({**_DEFAULTS[family], **model}, where)
    if name is None:
        return None, ()
    return read_changed_model(name, model) if SHAPES.keys() & model.keys() else read_named_model(name)


def check_is_decoder(names: Iterable[str | None], where: str) -> None:
    """Raise ConfigError where a name says a model that has other layers than a decoder of attention and MLPs."""
    if other := next((text for text in names if text and _OTHER.search(text)), None):
        reason = f"trains {plain(other, 60)}; only decoders of attention and MLPs are read"
        raise ConfigError(reason, where=where)


def hugging_face_name(made: Mapping[str, Any]) -> str | None:
    """The model that a provider is made from: ``AutoBridge.from_hf_pretrained(NAME).to_megatron_provider()``."""
    node: Any = made
    bridged = False
    while isinstance(node, dict):
        bridged = bridged or _BRIDGE in str(node.get(CLASS))
        first = next(iter(node.get(ARGUMENTS, ())), None)
        if bridged and isinstance(first, str):
            return first
        node = first if bridged and isinstance(first, dict) else node.get(OWNER)
    return None


def provider_name(made_by: str) -> str | None:
    """``Llama31ModelProvider8B`` → ``llama3.1-8b``; ``None`` where a class has neither version nor size."""
    named = _PROVIDER.search(made_by)
    if named is None or not (named["size"] or re.search(r"\d", named["family"])):
        return None
    family = _FAMILY.match(_family(made_by))
    if family is None:
        return None
    version = ".".join(part for part in (family["major"], family["minor"]) if part)
    size = named["size"].casefold().replace("_", "-")
    return in_billions(f"{family['name']}{version}-{size}").rstrip("-")


def _family(made_by: str) -> str:
    named = _PROVIDER.search(made_by)
    return named["family"].casefold() if named else ""


def _described(model: Mapping[str, Any], where: str) -> tuple[Architecture, tuple[str, ...]]:
    """The model whose shapes are all said."""
    if open_ := sorted(key for key in SHAPES if model.get(key) is UNKNOWN):
        return Architecture(), (f"the model is unknown: it hangs on {', '.join(open_)}; add model=NAME",)
    said = {_RENAMED.get(key, key): value for key, value in model.items() if isinstance(value, str | int | float)}
    said["swiglu"] = model.get("gated_linear_unit") is True
    said["untie_embeddings_and_output_weights"] = model.get("share_embeddings_and_output_weights", True) is False
    said["group_query_attention"] = model.get("num_query_groups") is not None
    if said.get("position_embedding_type", "learned_absolute") == "learned_absolute":
        said |= {"max_position_embeddings": model["seq_length"]} if isinstance(model.get("seq_length"), int) else {}
    architecture, _, notes = architecture_of(StackSettings(said, where))
    return architecture, notes
