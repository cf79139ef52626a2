"""The few constants of the model: what each one means, and where the fit starts and how far it may go.

A constant has one value for all, times an effect of the chip, its vendor, the framework and the precision where these
matter. An unseen chip or framework has no effect: it gets the value for all, or that of its vendor. Efficiencies and
exposures are shares: effects multiply their odds, so that no group can leave (0, 1). Values come from
``calibration.json``.
"""

from dataclasses import dataclass, fields

from asap.prediction.step_model.inputs import Number


@dataclass(frozen=True, slots=True)
class Constants:
    """Values in SI units, resolved for one run or, as arrays, for many."""

    matmul_efficiency: Number
    """Sustained share of the peak of large matrix multiplications."""
    attention_efficiency: Number
    """Rate of a fused attention kernel over that of large matrix multiplications, for long sequences."""
    attention_ramp: Number
    """Keys at which a fused attention kernel reaches half of that rate (arXiv:2307.08691, figures 4 to 6)."""
    grouped_efficiency: Number
    """Rate of the experts' grouped matrix multiplications over that of a single one."""
    operand_exposure: Number
    """Share of a matrix multiplication's operand traffic that does not hide behind its FLOPs."""
    memory_efficiency: Number
    """Sustained share of the HBM bandwidth."""
    elementwise_traffic: Number
    """HBM passes of elementwise kernels over the fewest that a layer needs."""
    norm_traffic: Number
    """HBM passes of norms that run as separate kernels, over the fewest needed."""
    score_traffic: Number
    """HBM passes over a score matrix that goes through HBM, over the fewest needed."""
    layer_overhead: Number
    """Fixed seconds of each pass over a layer."""
    kernel_floor: Number
    """Seconds that the host takes to launch one pass over a dense layer."""
    engine_floor: Number
    """Seconds that Transformer Engine adds to launching one pass over a dense layer."""
    expert_floor: Number
    """Seconds that the host takes to launch one pass over a layer of experts, without its attention."""
    collective_floor: Number
    """Seconds that tensor parallelism adds to launching a layer."""
    microbatch_overhead: Number
    """Fixed seconds of each microbatch."""
    step_overhead: Number
    """Fixed seconds of each step."""
    link_efficiency: Number
    """Sustained share of the bandwidth of ICI or NVLink."""
    collective_ramp: Number
    """Seconds that a collective of GPUs takes until it flows at that rate."""
    network_efficiency: Number
    """Sustained share of the bandwidth between nodes or slices."""
    tensor_exposure: Number
    """Share of tensor and sequence collectives that nothing hides."""
    gather_exposure: Number
    """Share of parameter gathers that nothing hides, however much compute there is."""
    replica_exposure: Number
    """Share of the gradient reduction that nothing hides."""
    expert_exposure: Number
    """Share of all-to-alls that nothing hides."""
    stage_exposure: Number
    """Share of pipeline sends that nothing hides."""
    overlap_window: Number
    """Share of the compute that can hide parameter gathers and gradients."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Where a constant starts, how many e-folds it may move, and by how much a group may deviate from all.

    What the machine can do does not depend on the framework: links and networks deviate by their kind alone. A pass
    over a layer is taken for some thirty operations, each of which takes the host 5 to 25 µs to launch
    (https://jiahuanglin.xyz/all_lessons/gpu_kernel_serving/18_pytorch_to_kernel.html).
    """

    start: float
    spread: float
    chip: float = 0.0
    framework: float = 0.0
    precision: float = 0.0
    kernel: float = 0.0
    fabric: float = 0.0
    vendor: float = 0.0


PRIORS: dict[str, Prior] = {
    "matmul_efficiency": Prior(0.75, 0.3, chip=0.06, framework=0.10, precision=0.15, vendor=0.3),
    "attention_efficiency": Prior(0.72, 0.08, chip=0.05, kernel=0.1),
    "attention_ramp": Prior(500.0, 0.7),
    "grouped_efficiency": Prior(0.6, 0.4),
    "operand_exposure": Prior(0.3, 0.7),
    "memory_efficiency": Prior(0.8, 0.2),
    "elementwise_traffic": Prior(1.5, 0.5, framework=0.4),
    "norm_traffic": Prior(0.7, 0.7),
    "score_traffic": Prior(1.0, 0.5),
    "layer_overhead": Prior(60e-6, 0.4, framework=0.3, fabric=1.0),
    "kernel_floor": Prior(500e-6, 0.4),
    "engine_floor": Prior(500e-6, 0.4),
    "expert_floor": Prior(0.7e-3, 0.5),
    "collective_floor": Prior(100e-6, 0.7),
    "microbatch_overhead": Prior(1e-3, 1.0),
    "step_overhead": Prior(10e-3, 1.0),
    "link_efficiency": Prior(0.7, 0.3, chip=0.3),
    "collective_ramp": Prior(50e-6, 0.3),
    "network_efficiency": Prior(0.75, 0.2, fabric=0.4),
    "tensor_exposure": Prior(0.8, 0.4, framework=0.3),
    "gather_exposure": Prior(0.2, 0.5, framework=0.4),
    "replica_exposure": Prior(0.5, 0.5, framework=0.5),
    "expert_exposure": Prior(0.7, 0.4),
    "stage_exposure": Prior(0.8, 0.4),
    "overlap_window": Prior(0.8, 0.3),
}
"""Where constants start, and how far published runs may move them. Judgement: what these say little of."""

MEASURED_LINKS = {"a100": "a100", "h100": "h100", "b200": "b200", "b300": "b200"}
"""Generations of chips whose links NCCL was measured on, and on which: these rates are not fitted to whole steps
(:mod:`asap.calibration.fit.link_rates`), and neither is the ramp."""
MEASURED = ("collective_ramp",)

SHARES = tuple(name for name in PRIORS if name.endswith(("_efficiency", "_exposure", "_window")))
"""Constants between 0 and 1."""

NAMES = tuple(field.name for field in fields(Constants))
