"""What decides which flags matter: chip, stack, and the traffic that a plan causes."""

from dataclasses import dataclass
from typing import Literal

from asap.core.errors import InsufficientEvidenceError
from asap.hardware import Chip
from asap.models import Architecture
from asap.models.parameters import count_parameters
from asap.plans import Plan
from asap.stacks.launchers import Stack
from asap.stacks.registry import contracts

Runtime = Literal["libtpu", "xla_gpu", "torch"]

TRAFFIC = frozenset(
    {
        "collectives",
        "weight_gathers",
        "tensor_or_context",
        "all_to_alls",
        "pipeline",
        "gradients_between_slices",
        "several_nodes",
        "nvlink",
    }
)
NEEDS = TRAFFIC | {"offload", "dense", "experts"}
"""What a table may ask for."""
_BF16 = 2


@dataclass(frozen=True)
class Situation:
    """A run as far as flags are concerned.

    Args:
        plan: that runs or is proposed.
        chip: what it runs on.
        stack: what launches it; ``None`` is unknown.
        model: what is trained.
        hidden: words of ``NEEDS`` of which a profile shows that they cost nothing.
    """

    plan: Plan | None
    chip: Chip | None
    stack: Stack | None
    model: Architecture | None = None
    hidden: frozenset[str] = frozenset()

    @property
    def runtime(self) -> Runtime | None:
        """What reads the flags; ``None`` if the chip is unknown, or on a GPU what launches the run."""
        if self.chip is not None and self.chip.kind == "tpu":
            return "libtpu"
        if self.chip is None or self.stack is None:
            return None
        return "xla_gpu" if contracts()[self.stack].kin == "jax" else "torch"

    @property
    def needs(self) -> frozenset[str]:
        """What the plan has to do beside computing, and what kind of model it is."""
        found = set()
        if self.model is not None:
            found.add("experts" if self.model.is_moe else "dense")
        if (plan := self.plan) is not None:
            found |= {word for word, present in self._traffic(plan).items() if present}
        return frozenset(found) - self.hidden

    @property
    def layer_bytes(self) -> int | None:
        """Bytes of the weights of a layer in bf16, rounded up to a power of two; ``None`` if they are not known."""
        if self.model is None or not self.model.layers:
            return None
        try:
            count = count_parameters(self.model)
        except InsufficientEvidenceError:
            return None
        each = _BF16 * (count.total - count.embedding) // self.model.layers
        return 1 << max(each - 1, 1).bit_length()

    def _traffic(self, plan: Plan) -> dict[str, bool]:
        scaleup, host = (self.chip.scaleup, self.chip.host_bandwidth) if self.chip else (None, None)
        domain = scaleup.domain if scaleup else None
        return {
            "collectives": plan.devices > 1,
            "weight_gathers": plan.degree("data") > 1,
            "tensor_or_context": plan.degree("model") > 1 or plan.degree("seq") > 1,
            "all_to_alls": plan.degree("expert") > 1,
            "pipeline": plan.degree("stage") > 1,
            "gradients_between_slices": plan.dcn.replica > 1 or plan.dcn.data > 1,
            "several_nodes": domain is not None and plan.devices > domain,
            "nvlink": scaleup is not None and scaleup.bandwidth >= (host or 0.0),
            "offload": bool(plan.offload) or plan.moves_activations,
        }
