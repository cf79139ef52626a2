"""Recomputation of single modules of every layer, or of some layers as a whole (Megatron-Core, torchtitan)."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self, get_args

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
