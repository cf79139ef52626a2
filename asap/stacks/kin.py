"""What steps of frameworks that are one code, or forks of one, have in common (``kin.toml``)."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Literal

from pydantic import Field

from asap.stacks.registry import FOLDER, by_framework
from asap.stacks.words import Part


class Kin(Part):
    """Properties of steps; by default those of a framework that is not known."""

    pattern: str = Field(default="", description="of names of frameworks without a table")
    xla: bool = Field(default=False, description="whether XLA compiles the step")
    transformer_engine: bool = False
    of_core: bool = Field(default=False, description="Megatron's core: its softmax, and gathered activations go again")
    apex: bool = Field(default=False, description="whether norms are Apex's kernels")
    eager: bool = Field(default=True, description="whether gates and norms are single operations unless compiled")
    fully_shards: bool = Field(default=False, description="whether it is PyTorch's FSDP, or stands on it")
    fp32_master: bool = Field(default=True, description="bf16 parameters with an fp32 copy")
    fp32_reduction: bool = Field(default=False, description="gradients are reduced in fp32")
    overlaps_reduction: bool = True
    splits_sequence: bool = Field(default=False, description="whether tensor parallelism splits the residual stream")
    logit_bytes: float = Field(default=12.0, description="what the loss holds for a logit")
    weights_over_tokens: bool = Field(default=False, description="whether all that see other tokens share weights")
    brings_kernels: bool = Field(default=True, description="whether fused attention is written anew for each chip")
    shards_state: bool = Field(default=False, description="whether replicas usually share the optimizer's state")
    one_code: bool = Field(default=False, description="whether its frameworks are one code, or forks of one")
    microbatches: Literal["stages", "open", "one"] = Field(
        default="one", description="where not said: as many as stages, a power of two, or one"
    )
    own_allocator: str = Field(default="", description="who plans the memory, in place of PyTorch block by block")
    sequence_parallel_share: float | None = Field(
        default=None, description="of published runs with tensor parallelism, those with sequence parallelism"
    )


@cache
def kins() -> Mapping[str, Kin]:
    """Every kin by its name."""
    values = tomllib.loads((FOLDER / "kin.toml").read_text(encoding="utf-8"))
    return {name: Kin.model_validate(each) for name, each in values.items()}


@lru_cache(maxsize=1024)
def kin_name(framework: str | None) -> str | None:
    """``Megatron-DeepSpeed`` → ``megatron``; ``None`` for what is unknown."""
    if table := by_framework(framework):
        return table.kin
    low = (framework or "").casefold()
    return next((name for name, kin in kins().items() if re.search(kin.pattern, low)), None)


_UNKNOWN = Kin()


def kin_of(framework: str | None) -> Kin:
    """What a framework's steps have in common with others'."""
    return kins().get(kin_name(framework) or "", _UNKNOWN)
