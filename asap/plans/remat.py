"""What the backward pass recomputes, and what lies in host memory."""

from enum import StrEnum
from typing import Literal

Offload = Literal["optimizer", "parameters", "activations"]


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


MAXTEXT_POLICIES: dict[str, Remat] = {
    "none": Remat.NONE,
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
    "minimal_offloaded": Remat.OFFLOAD,
    "qkv_proj_offloaded": Remat.OFFLOAD,
    "full": Remat.FULL,
}
"""MaxText's ``remat_policy`` by what it keeps (``get_remat_policy`` in its layers/nnx_decoders.py); the first of each
group is written where the current policy is of another."""

POLICIES: dict[str, Remat] = MAXTEXT_POLICIES | {policy.value: policy for policy in Remat}
"""Every name of a policy that a plan's text may use."""
