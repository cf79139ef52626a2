"""The passes of a pipeline in time: which device works on which microbatch when, under each schedule.

Each device has its forwards in a fixed order and its backwards in another, and takes the first that can start: a
forward while the schedule lets it hold another activation, then a backward, then gradients of weights.

Schedules: GPipe (arXiv:1811.06965), 1F1B and interleaved stages (arXiv:2104.04473), ZB-H1 (arXiv:2401.10241), DualPipe
(arXiv:2412.19437), whose devices hold a stage from each end and send half of the microbatches either way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from asap.prediction.step_model.compute import ACTIVATION_BYTES
from asap.prediction.step_model.constants import Constants
from asap.prediction.step_model.device_parameters import owned_parameters, stage_parameters
from asap.prediction.step_model.inputs import Number, StepInputs


class Schedule(StrEnum):
    """Schedules of a pipeline."""

    GPIPE = "gpipe"
    ONE_F_ONE_B = "1f1b"
    INTERLEAVED = "interleaved"
    ZERO_BUBBLE = "zero-bubble"
    DUALPIPE = "dualpipe"


SPLIT = (Schedule.ZERO_BUBBLE, Schedule.DUALPIPE)
"""Gradients of weights are passes of their own."""


class Pipeline(NamedTuple):
    """Stages, one a device; microbatches; parts of a stage that a device runs in turn, where stages are interleaved."""

    stages: int
    microbatches: int
    schedule: Schedule = Schedule.ONE_F_ONE_B
    repeats: int = 1


class Pass(NamedTuple):
    """One microbatch in one part of the model: ``forward``, ``backward`` or ``weights``; ``way`` is 1 if it comes from
    the other end. A forward pass through all parts of a stage takes 1."""

    kind: str
    way: int
    part: int
    microbatch: int
    device: int
    start: float = 0.0
    end: float = 0.0

    @property
    def key(self) -> tuple[str, int, int, int]:
        """Which it is, whenever it runs."""
        return self[:4]


@dataclass
class _Queue:
    """What a device has still to do for the microbatches that come from one end, first things first."""

    forwards: list[Pass]
    backwards: list[Pass]
    most_held: int
    weights: list[Pass] = field(default_factory=list)
    held: int = 0

    @property
    def first(self) -> Iterator[tuple[int, Pass]]:
        """The first of each kind; the lower number goes first where both can start."""
        if self.forwards and self.held < self.most_held:
            yield 0, self.forwards[0]
        yield from ((rank, queue[0]) for rank, queue in enumerate((self.backwards, self.weights), 1) if queue)

    def take(self, begun: Pass, split: bool) -> None:
        """It is begun."""
        {"forward": self.forwards, "backward": self.backwards, "weights": self.weights}[begun.kind].pop(0)
        self.held += {"forward": 1, "backward": -1, "weights": 0}[begun.kind]
        if begun.kind == "backward" and split:
            self.weights.append(begun._replace(kind="weights"))


@lru_cache(maxsize=1024)
def bubble_share(pipeline: Pipeline, computes_again: bool = False) -> float:
    """The bubble over what a device works on one microbatch, where transfers take no time.

    Once the pipeline is full it does not grow with microbatches, and four to a stage fill it.
    """
    stages, count = pipeline.stages, pipeline.microbatches
    count, work = min(count, 4 * stages + count % stages), 4.0 if computes_again else 3.0
    found = passes(pipeline._replace(microbatches=count), computes_again)
    return max(each.end for each in found) / work - count


def passes(pipeline: Pipeline, computes_again: bool = False) -> list[Pass]:
    """All passes of a step, in the order in which they start; gradients of inputs and of weights take 1 each, and so
    does what is ``computed again`` for them."""
    split, last = pipeline.schedule in SPLIT, pipeline.stages * pipeline.repeats - 1
    backward = (2.0 if computes_again else 1.0) + (0.0 if split else 1.0)
    lengths = {"forward": 1.0, "backward": backward, "weights": 1.0}
    devices = [_queues(pipeline, number) for number in range(pipeline.stages)]
    free, ends, found = [0.0] * pipeline.stages, dict[tuple[str, int, int, int], float](), list[Pass]()
    while ready := [
        (max([free[each.device], *(ends[key] for key in _needs(each, last))]), rank, each)
        for queues in devices
        for queue in queues
        for rank, each in queue.first
        if all(key in ends for key in _needs(each, last))
    ]:
        start, _, begun = min(ready)
        devices[begun.device][begun.way].take(begun, split)
        end = free[begun.device] = ends[begun.key] = start + lengths[begun.kind] / pipeline.repeats
        found.append(begun._replace(start=start, end=end))
    return found


def _needs(each: Pass, last: int) -> list[tuple[str, int, int, int]]:
    """What has to be done before a pass."""
    kind, way, part, microbatch = each.key
    if kind == "forward":
        return [("forward", way, part - 1, microbatch)] if part else []
    own = ("forward", way, part, microbatch)
    return [own, ("backward", way, part + 1, microbatch)] if kind == "backward" and part < last else [own]


def _queues(pipeline: Pipeline, device: int) -> list[_Queue]:
    """What a device has to do: from one end, or with DualPipe half of the microbatches from either."""
    stages, count, schedule, repeats = pipeline
    held = {Schedule.GPIPE: count, Schedule.INTERLEAVED: 2 * (stages - device - 1) + (repeats - 1) * stages + 1}
    if schedule is not Schedule.DUALPIPE:
        return [_queue(pipeline, device, 0, device, held.get(schedule, stages - device))]
    halves = (pipeline._replace(microbatches=half) for half in ((count + 1) // 2, count // 2))
    places = (device, stages - 1 - device)
    return [_queue(half, device, way, places[way], stages - places[way]) for way, half in enumerate(halves)]


def _queue(pipeline: Pipeline, device: int, way: int, place: int, most_held: int) -> _Queue:
    """Microbatches in groups of as many as there are stages, each through one part of a device after the other."""
    stages, count, _, repeats = pipeline
    turns = [(each // stages, repeat, each % stages) for each in range(count) for repeat in range(repeats)]

    def ordered(kind: str, sign: int) -> list[Pass]:
        order = sorted(turns, key=lambda turn: (turn[0], sign * turn[1], turn[2]))
        return [Pass(kind, way, repeat * stages + place, group * stages + at, device) for group, repeat, at in order]

    return _Queue(ordered("forward", 1), ordered("backward", -1), most_held)


RESIDUAL_PASSES = 61.0
"""Reads and writes of the residual stream in a step. It and those below were counted in programs of jax 0.10 for a CPU,
of a decoder of five layers on meshes of eight: all that is no product and no collective."""
HIDDEN_PASSES = 22.0
"""Of the MLP's input projections and of their product."""
ATTENTION_PASSES = 20.0
"""Of queries, keys, values and what attention writes."""
SCORE_PASSES = 30.0
STRIDED_SCORE_PASSES = 8.0
"""What transposes of scores take besides where the next score of a column lies a multiple of 4 KiB on: 5.5 ns of a core
for each score in the steps of eight devices, 3.0 ns at 2 KiB. Alone on a core 9 to 16 ns, and 2.8 ns."""
LOGIT_PASSES = 7.0
WEIGHT_PASSES = 4.0
"""Of weights as gathered."""
STATE_PASSES = 17.0
"""Of the parameters that a device owns: the update, and slices of the stack of layers."""
UNFUSED_SUM_PASSES = 4.0
"""What a sum of products takes besides where it is not fused. Alone on a core it takes 2.4 to 3.0 ns more for each
product (0.3 to 1.4 ns fused), which are 3.7 to 4.6 passes at the bandwidth of a virtual device."""
CACHE_WAY_BYTES = 4096
"""Of the first-level caches of x86 cores: addresses that are multiples of it apart share one set of lines."""


def memory_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one device in one step that computes nothing again."""
    model, layout = inputs.model, inputs.plan
    tokens = layout.microbatches * inputs.tokens_per_microbatch
    inner = HIDDEN_PASSES * (model.up_projections + 1) * _mlp_width(inputs)
    inner = inner + ATTENTION_PASSES * (model.qkv_width + model.out_width)
    of_layer = tokens * (RESIDUAL_PASSES * model.width + inner / layout.model) + _score_passes(inputs) * _scores(inputs)
    activations = inputs.layers_per_stage * of_layer + LOGIT_PASSES * tokens * model.vocab / layout.model
    gathered = WEIGHT_PASSES * layout.microbatches * stage_parameters(inputs)
    owned = STATE_PASSES * owned_parameters(inputs).under_zero(inputs, 1)
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    return (size * activations + inputs.workload.parameter_bytes * (gathered + owned)) / _bandwidth(inputs, constants)


def unfused_sum_seconds(inputs: StepInputs, constants: Constants) -> Number:
    """Of one device in one step: sums of products in the backward pass, over the keys of a softmax and the width of
    a norm.

    XLA drops a dimension of one from what is multiplied, and then YNN, which computes the sum, does not fuse them.
    Scores have a dimension each for sequences, groups of heads with the same keys, and heads of such a group; what is
    normalised, one for sequences. Two norms a layer and a last one are taken for granted.
    """
    model, layout = inputs.model, inputs.plan
    sequences = inputs.sequences_per_microbatch
    heads = np.minimum(model.kv_heads / layout.model, model.heads / model.kv_heads)
    scores = np.where(np.minimum(sequences, heads) <= 1, inputs.layers_per_stage * _scores(inputs), 0.0)
    stream = inputs.tokens_per_microbatch * model.width
    normalised = np.where(sequences <= 1, (2 * inputs.layers_per_stage + 1) * stream, 0.0)
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    moved = UNFUSED_SUM_PASSES * size * layout.microbatches * (scores + normalised)
    return moved / _bandwidth(inputs, constants)


def _score_passes(inputs: StepInputs) -> Number:
    """Products keep the scores of a group of heads key by key, and what lies between products, query by query.

    Transposes walk down the columns of the former. The larger the power of two in the bytes from one key to the next,
    the fewer sets of a cache hold the lines of a column.
    """
    model, layout = inputs.model, inputs.plan
    groups = np.maximum(model.kv_heads / layout.model, 1)
    rows = model.heads / layout.model / groups * inputs.workload.sequence / layout.seq
    size = np.maximum(inputs.workload.operand_bytes, ACTIVATION_BYTES)
    power_of_two = np.gcd(np.rint(rows * size).astype(int), CACHE_WAY_BYTES)
    return SCORE_PASSES + STRIDED_SCORE_PASSES * power_of_two / CACHE_WAY_BYTES


def _scores(inputs: StepInputs) -> Number:
    """Of one layer and microbatch."""
    scores = inputs.tokens_per_microbatch * inputs.workload.sequence * inputs.model.heads / inputs.plan.model
    return np.where(inputs.workload.fused_attention > 0, 0.0, scores)


def _mlp_width(inputs: StepInputs) -> Number:
    """Mean over layers; in those of experts, of all that a token goes to."""
    model, share = inputs.model, inputs.model.moe_share
    return model.mlp_width * (1 - share) + share * (
        inputs.computed_experts * model.expert_mlp_width + model.shared_mlp_width
    )


def _bandwidth(inputs: StepInputs, constants: Constants) -> Number:
    return inputs.hardware.hbm_bandwidth * constants.memory_efficiency
