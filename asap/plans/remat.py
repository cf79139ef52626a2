"""What the backward pass recomputes, what lies in host memory, and what the optimizer keeps."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias, get_args

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


class PolicyText(ABC):
    """A policy with a text form, which is also its JSON."""

    @property
    @abstractmethod
    def value(self) -> str:
        """The text of a plan, like that of a named policy."""

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Read the text form.

        Raises:
            ValueError: it is no such policy.
        """

    def __str__(self) -> str:
        return self.value

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        text = core_schema.no_info_after_validator_function(cls.parse, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), text]),
            serialization=core_schema.to_string_ser_schema(when_used="always"),
        )


Module = Literal["core_attn", "layernorm", "mla_up_proj", "mlp", "moe", "moe_act", "shared_experts"]
MODULES: tuple[Module, ...] = get_args(Module)
"""Megatron-Core's ``recompute_modules`` (``core/transformer/transformer_config.py``)."""

_OF_MODULES, _OF_LAYERS = "selective.", "full."
OF_PARTS = (_OF_MODULES, _OF_LAYERS)
"""How the texts of these policies begin."""


@dataclass(frozen=True)
class RecomputedModules(PolicyText):
    """Modules of every layer are computed again, all else is kept (``selective.layernorm+moe_act``)."""

    modules: tuple[Module, ...]

    @property
    def value(self) -> str:
        """``selective.layernorm+moe_act``."""
        return _OF_MODULES + "+".join(self.modules)

    @classmethod
    def parse(cls, text: str) -> "RecomputedModules":
        """Read the text form.

        Raises:
            ValueError: a word of it is no module, or given twice.
        """
        words = text.lower().removeprefix(_OF_MODULES).split("+")
        if not text.lower().startswith(_OF_MODULES) or len({*words}) < len(words) or not {*words} <= {*MODULES}:
            raise ValueError(f"must be {_OF_MODULES} and modules out of {', '.join(MODULES)}, each once, joined by +")
        return cls.of(words)

    @classmethod
    def of(cls, modules: Collection[str]) -> "RecomputedModules":
        """Of the modules that Megatron-Core knows, in one order."""
        return cls(tuple(module for module in MODULES if module in modules))


@dataclass(frozen=True)
class RecomputedLayers(PolicyText):
    """A share of the layers of every stage is computed again as a whole, the others keep all (``full.1/2``)."""

    share: Fraction

    @property
    def value(self) -> str:
        """``full.1/2``."""
        return f"{_OF_LAYERS}{self.share.numerator}/{self.share.denominator}"

    @classmethod
    def parse(cls, text: str) -> "RecomputedLayers":
        """Read the text form.

        Raises:
            ValueError: it is no share between 0 and 1.
        """
        part, bar, whole = text.lower().removeprefix(_OF_LAYERS).partition("/")
        digits = text.lower().startswith(_OF_LAYERS) and bar and part.isdecimal() and whole.isdecimal()
        if not digits or len(part + whole) > 8 or not 0 < int(part) < int(whole):
            raise ValueError(f"must be {_OF_LAYERS} and a share of the layers, as in {_OF_LAYERS}1/2")
        return cls(Fraction(int(part), int(whole)))


Offload = Literal["optimizer", "parameters", "activations"]
Tensor = Literal["query", "key", "value", "context", "out", "gate", "up"]
TENSORS: tuple[Tensor, ...] = get_args(Tensor)
"""What a layer may keep beside its input: outputs of its matrix products, and of attention (``context``). Its backward
pass does not read what the last product writes."""

_HOST = "host."
TOGETHER: dict[str, tuple[Tensor, ...]] = {"qkv": ("query", "key", "value")}
"""Words of a plan's text that stand for several tensors."""
StatePrecision = Literal["fp32", "bf16"]
"""Of what a device keeps from step to step."""
Optimizer = Literal["adamw", "muon"]
"""What makes the update, as far as a plan may change it."""


class Remat(StrEnum):
    """What the backward pass recomputes instead of keeping.

    ``minimal`` keeps what matrix products write, the next three a part of that, under MaxText's names; ``selective`` is
    Megatron's and keeps all but what is inside attention; ``offload`` keeps products in host memory.
    """

    NONE = "none"
    MINIMAL = "minimal"
    SAVE_DOT_EXCEPT_MLP = "save_dot_except_mlp"
    SAVE_QKV_PROJ = "save_qkv_proj"
    SAVE_OUT_PROJ = "save_out_proj"
    SELECTIVE = "selective"
    FULL = "full"
    OFFLOAD = "offload"


@dataclass(frozen=True)
class SavedTensors(PolicyText):
    """A policy tensor by tensor: what is kept on the device, and what in host memory (``key+value+host.query``)."""

    device: tuple[Tensor, ...] = ()
    host: tuple[Tensor, ...] = ()

    @property
    def value(self) -> str:
        """The text of a plan, like that of a named policy: ``qkv+context+host.out``."""
        return "+".join([*_short(self.device), *(f"{_HOST}{word}" for word in _short(self.host))])

    def __contains__(self, tensor: str) -> bool:
        return tensor in self.device or tensor in self.host

    @classmethod
    def parse(cls, text: str) -> "SavedTensors":
        """Read the text form.

        Raises:
            ValueError: a word of it is no tensor, or given twice.
        """
        words = [one for word in text.lower().split("+") for one in _tensors(word)]
        places = {word.removeprefix(_HOST): word.startswith(_HOST) for word in words}
        if len(places) < len(words) or not places.keys() <= set(TENSORS):
            raise ValueError(f"must be tensors out of {', '.join(TENSORS)}, each once, joined by +")
        device: tuple[Tensor, ...] = tuple(tensor for tensor in TENSORS if places.get(tensor) is False)
        return cls(device, tuple(tensor for tensor in TENSORS if places.get(tensor)))


def _short(tensors: tuple[Tensor, ...]) -> list[str]:
    """Words for tensors, one for those that have one together."""
    for word, parts in TOGETHER.items():
        if set(parts) <= set(tensors):
            return [word, *(tensor for tensor in tensors if tensor not in parts)]
    return list(tensors)


def _tensors(word: str) -> list[str]:
    """The tensors of a word, each with its place."""
    place = _HOST if word.startswith(_HOST) else ""
    return [f"{place}{part}" for part in TOGETHER.get(word.removeprefix(place), (word.removeprefix(place),))]


Policy: TypeAlias = Remat | SavedTensors | RecomputedModules | RecomputedLayers

SAVED: dict[Remat, SavedTensors] = {
    Remat.MINIMAL: SavedTensors(("query", "key", "value", "out", "gate", "up")),
    Remat.SAVE_DOT_EXCEPT_MLP: SavedTensors(("query", "key", "value", "out")),
    Remat.SAVE_QKV_PROJ: SavedTensors(("query", "key", "value")),
    Remat.SAVE_OUT_PROJ: SavedTensors(("out",)),
    Remat.OFFLOAD: SavedTensors((), ("query", "key", "value", "out")),
    Remat.FULL: SavedTensors(),
}
"""What is saved in addition to the input of each layer, under policies that save some tensors by name."""


def saved_tensors(policy: Policy) -> SavedTensors:
    """What a policy saves, and where: all on the device where it does not name tensors."""
    if isinstance(policy, SavedTensors):
        return policy
    return SAVED.get(policy, SavedTensors(TENSORS)) if isinstance(policy, Remat) else SavedTensors(TENSORS)


def recomputed_modules(modules: Collection[str]) -> Policy:
    """The policy that computes these modules of Megatron-Core again: a named one if there is one."""
    policy = RecomputedModules.of(modules)
    return {(): Remat.NONE, ("core_attn",): Remat.SELECTIVE}.get(policy.modules, policy)


def recomputed_layers(share: Fraction) -> Policy:
    """The policy that computes a share of the layers again: a named one for all and none of them."""
    return Remat.NONE if share <= 0 else Remat.FULL if share >= 1 else RecomputedLayers(share)


def read_policy(text: str) -> Policy:
    """A policy by its name or in words of its own: ``full``, ``qkv+context``, ``selective.mlp``, ``full.1/2``.

    Raises:
        ValueError: it is none; the message says what a text that begins like one must be.
    """
    if (named := POLICIES.get(text.lower())) is not None:
        return named
    if text.lower().startswith("selective."):
        return recomputed_modules(RecomputedModules.parse(text).modules)
    if text.lower().startswith("full."):
        return RecomputedLayers.parse(text)
    tensors = SavedTensors.parse(text)
    return saved(tensors.device, tensors.host, inputs_on_host=False)


def recomputes_layers(policy: Policy | None) -> bool:
    """Whether a policy computes layers again as a whole."""
    return policy is Remat.FULL or isinstance(policy, RecomputedLayers)


def recomputed_tensors(policy: Policy) -> float:
    """Tensors of a layer that a policy computes again, to order policies by."""
    if isinstance(policy, RecomputedLayers):
        return float(policy.share * len(TENSORS))
    if isinstance(policy, RecomputedModules):
        return float(sum(_TENSORS_OF[module] for module in policy.modules))
    kept = policy if isinstance(policy, SavedTensors) else SAVED.get(policy)
    return float(sum(tensor not in kept for tensor in TENSORS) if kept else policy is Remat.SELECTIVE)


_TENSORS_OF: dict[str, float] = {
    "core_attn": 1, "layernorm": 0.5, "mla_up_proj": 3, "mlp": 2, "moe": 2.5, "moe_act": 0.5, "shared_experts": 1,
}  # fmt: skip
"""By how many tensors of :data:`TENSORS` a module counts; a norm or an activation is less than a product."""


def saved(device: Iterable[str], host: Iterable[str], inputs_on_host: bool) -> Policy:
    """The policy that saves just these tensors: a named one if there is one."""
    on_device, on_host = set(device), set(host)
    tensors = SavedTensors(tuple(t for t in TENSORS if t in on_device), tuple(t for t in TENSORS if t in on_host))
    named = (policy for policy, group in SAVED.items() if group == tensors)
    policy = next(named, tensors)
    return tensors if policy is Remat.OFFLOAD and not inputs_on_host else policy


NAMED_POLICIES: dict[str, Policy] = {
    "minimal": Remat.MINIMAL,
    "minimal_flash": Remat.MINIMAL,
    "minimal_with_context": Remat.MINIMAL,
    "minimal_with_quantization": Remat.MINIMAL,
    "minimal_with_context_and_quantization": Remat.MINIMAL,
    "save_dot_except_mlp": Remat.SAVE_DOT_EXCEPT_MLP,
    "save_dot_except_mlpwi": Remat.SAVE_DOT_EXCEPT_MLP,
    "save_dot_with_context_except_mlp": Remat.SAVE_DOT_EXCEPT_MLP,
    "save_qkv_proj": Remat.SAVE_QKV_PROJ,
    "save_out_proj": Remat.SAVE_OUT_PROJ,
    "minimal_offloaded": SavedTensors((), ("query", "key", "value", "out", "gate", "up")),
    "qkv_proj_offloaded": SavedTensors((), ("query", "key", "value")),
    "full": Remat.FULL,
}
"""MaxText's ``remat_policy`` by what it keeps (``get_remat_policy`` in its layers/nnx_decoders.py); the first of each
group is written where the current policy is of another."""

POLICIES: dict[str, Policy] = NAMED_POLICIES | {policy.value: policy for policy in Remat}
"""Every name of a policy that a plan's text may use."""
