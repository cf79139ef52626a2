"""A plan to start from, where nothing on record says how a model is laid out."""

from asap.core.errors import PlanError
from asap.experiments import Experiment
from asap.hardware import Slice
from asap.models.parameters import count_parameters
from asap.plans import Plan
from asap.plans.validity import Constraints, violations
from asap.stacks.launchers import contract_of

ASSUMED = "assumed, as a start"
_HELD, _DIVIDED = 6, 12
"""Bytes of a parameter on each replica (bf16 weights, fp32 gradients), and those that its replicas share (fp32 weights,
two moments): ``--use-distributed-optimizer``."""
_WITH_IT = {
    "zero_stage": "a distributed optimizer", "sequence_parallel": "sequence parallelism", "precision": "bf16",
}  # fmt: skip
_LARGEST_TENSOR = 8
_FOR_STATE = 0.6
"""Of HBM; the rest is left to activations."""


def is_start(experiment: Experiment) -> bool:
    """Whether the plan of a record is such a one, which no launcher has been told."""
    return experiment.provenance.get("plan") == ASSUMED


def assume_start(experiment: Experiment, hardware: Slice | None, constraints: Constraints) -> Experiment:
    """The record with FSDP over all chips and full rematerialisation, where it has a model, a batch and hardware alone,
    such as one of a ``config.json``; else as it is. A step that was measured is of a plan that has to be given."""
    model, workload = experiment.model, experiment.workload
    if experiment.plan is not None or experiment.hyperparameters or experiment.measured is not None:
        return experiment
    start = contract_of(workload.framework).start
    if hardware is None or model is None or model.missing() or not workload.tokens:
        return experiment
    if start == "sharded":
        plan = _fully_sharded(hardware)
    else:
        plan = _smallest_split(experiment, hardware, constraints) if start == "split" else None
    if plan is None or violations(plan, constraints):
        return experiment
    notes = [f"no plan is on record: {plan} is taken as the start; --plan says another"]
    if start == "split":
        said = {"zero_stage": 1, "sequence_parallel": plan.degree("model") > 1, "precision": "bf16"}
        unsaid = {key: value for key, value in said.items() if getattr(workload, key) is None}
        experiment = experiment.model_copy(update={"workload": workload.model_copy(update=unsaid)})
        notes.append(f"with it: {', '.join(_WITH_IT[key] for key in unsaid if unsaid[key])}")
    if workload.framework is None:
        notes.append("what trains it is not on record: add workload.framework=MaxText or torchtitan")
    return experiment.model_copy(
        update={
            "plan": plan,
            "provenance": experiment.provenance | {"plan": ASSUMED},
            "notes": (*experiment.notes, *notes),
        }
    )


def _smallest_split(experiment: Experiment, hardware: Slice, constraints: Constraints) -> Plan | None:
    """Replicas with a distributed optimizer over as little tensor parallelism, then as few stages, as the model's state
    needs, one sequence at a time; ``None`` for a mixture of experts, which Megatron lays out in more ways."""
    model, batch = experiment.model, experiment.workload.global_batch
    if model is None or batch is None or model.is_moe:
        return None
    devices, scaleup = hardware.devices, hardware.chip.scaleup
    within = min(_LARGEST_TENSOR, scaleup.domain if scaleup else 1, model.kv_heads or 1)
    room = _FOR_STATE * hardware.chip.device_capacity
    held = count_parameters(model).total
    for stages in _powers(devices):
        for tensor in _powers(within):
            split = stages * tensor
            replicas, rest = divmod(devices, split)
            if rest or batch % replicas or (model.layers or 1) % stages:
                continue
            plan = Plan.parse(f"replica={replicas} model={tensor} stage={stages} remat=full")
            plan = plan.model_copy(update={"microbatches": batch // replicas})
            if held * (_HELD / split + _DIVIDED / devices) <= room and not violations(plan, constraints):
                return plan
    return None


def _powers(limit: int) -> list[int]:
    return [2**power for power in range(limit.bit_length()) if 2**power <= limit]


def _fully_sharded(hardware: Slice) -> Plan | None:
    slices = f"dcn.replica={hardware.slices}" if hardware.chip.torus is not None and hardware.slices > 1 else ""
    devices = hardware.devices_per_slice if slices else hardware.devices
    try:
        return Plan.parse(f"data={devices} {slices} microbatches=1 remat=full")
    except PlanError:
        return None
