"""One training step in numbers: what every formula of the step model reads."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import TypeVar

import numpy as np

from asap.prediction.step_model.inputs.hardware import HardwareInputs
from asap.prediction.step_model.inputs.model import ModelInputs
from asap.prediction.step_model.inputs.number import Number, select
from asap.prediction.step_model.inputs.plan import PlanInputs
from asap.prediction.step_model.inputs.workload import WorkloadInputs

Result = TypeVar("Result")


@dataclass(frozen=True)
class StepInputs:
    """Model, workload, hardware and plan of one step, or of many at once."""

    model: ModelInputs
    workload: WorkloadInputs
    hardware: HardwareInputs
    plan: PlanInputs

    @cached_property
    def sequences_per_microbatch(self) -> Number:
        """Sequences of one batch shard in one microbatch; below one where the batch does not reach all devices."""
        return self.workload.batch / (self.plan.batch_shards * self.plan.microbatches)

    @cached_property
    def tokens_per_microbatch(self) -> Number:
        """Tokens that one device works on in one microbatch, before tensor parallelism."""
        return self.sequences_per_microbatch * self.workload.sequence / self.plan.seq

    @cached_property
    def layers_per_stage(self) -> Number:
        """Layers of the fullest pipeline stage."""
        return np.ceil(self.model.layers / self.plan.stages)

    @cached_property
    def layers_with_loss(self) -> Number:
        """Layers of the last stage. Where stages do not divide the layers, launchers count the embedding and the loss
        as layers (Megatron Core, ``account_for_loss_in_pipeline_split``), or have a layout that does the like."""
        uneven = (self.layers_per_stage * self.plan.stages > self.model.layers) & (self.workload.xla == 0)
        return self.layers_per_stage - np.where(uneven, 1.0, 0.0)

    @cached_property
    def computed_experts(self) -> Number:
        """Routed experts that compute a token: those it visits, and a share of the slots that stay empty (GShard,
        arXiv:2006.16668, section 2.2; Switch Transformers, arXiv:2101.03961, section 2.2)."""
        return self.model.experts_per_token * self.workload.capacity_factor

    @cached_property
    def expert_devices(self) -> Number:
        """Devices over which the experts of a layer lie whole: the expert axis, and those that are folded into it
        (Liu et al., arXiv:2504.14960, section 3.2)."""
        work, layout = self.workload, self.plan
        over_model = select(work.experts_over_model, layout.model, 1.0)
        return layout.expert * over_model * select(work.experts_over_seq, layout.seq, 1.0)

    @cached_property
    def expert_parts(self) -> Number:
        """Parts into which the tensor axis splits an expert."""
        return select(self.workload.experts_over_model, 1.0, self.plan.model)

    @cached_property
    def replicas(self) -> Number:
        """Devices that hold the same shard of the parameters; ZeRO shards the state over them."""
        same_tokens = select(self.workload.weights_over_tokens, 1.0, self.plan.seq)
        return self.plan.replica * self.plan.dcn_replica * same_tokens

    @cached_property
    def expert_replicas(self) -> Number:
        """The same for experts, of which devices that share a sequence hold copies unless experts lie over them."""
        shared = select(self.workload.weights_over_tokens, 1.0, self.plan.seq)
        return self.replicas / select(self.workload.experts_over_seq, shared, 1.0)

    @cached_property
    def dense_replicas(self) -> Number:
        """The same for parameters of no expert: unless they are sharded over the expert axis, it holds copies."""
        return self.replicas * select(self.workload.weights_over_tokens, 1.0, self.plan.expert)

    @cached_property
    def key_value_parts(self) -> Number:
        """Parts into which the tensor axis divides keys and values, and their weights.

        Beyond the number of their heads Megatron repeats heads; XLA leaves an axis out that does not divide a
        dimension, so each device computes and keeps all of them.
        """
        heads, degree = self.model.kv_heads, self.plan.model
        return np.where(
            np.floor(heads / degree) * degree == heads,
            degree,
            select(self.workload.xla, 1.0, np.minimum(heads, degree)),
        )

    @cached_property
    def qkv_width_per_device(self) -> Number:
        """Width of queries, keys and values that one device computes."""
        queries = self.model.qkv_width - self.model.key_value_width
        return queries / self.plan.model + self.model.key_value_width / self.key_value_parts

    @cached_property
    def held_key_value_width(self) -> Number:
        """Width of keys and values that one device holds: those of its own heads, of one at least."""
        heads, degree = self.model.kv_heads, self.plan.model
        return self.model.key_value_width / np.where(heads < degree, heads, degree)

    @cached_property
    def held_qkv_width(self) -> Number:
        """The same, with its queries."""
        return (self.model.qkv_width - self.model.key_value_width) / self.plan.model + self.held_key_value_width


def once(formula: Callable[[StepInputs], Result]) -> Callable[[StepInputs], Result]:
    """A formula that time and memory share: its result is kept with the inputs, as their cached properties are."""
    name = f"{formula.__module__}.{formula.__qualname__}"

    @wraps(formula)
    def kept(inputs: StepInputs) -> Result:
        if name not in inputs.__dict__:
            inputs.__dict__[name] = formula(inputs)
        return inputs.__dict__[name]

    return kept
