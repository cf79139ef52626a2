"""What devices hold whole and could hold in parts, or twice: optimizer state, norms and residuals, parameters."""

from collections.abc import Mapping

from asap.levers.lever import PRESENT, Lever, Run, Trial, Value, set_to
from asap.plans import Plan


def _state_in_parts(run: Run) -> Mapping[str, str]:
    whole = not run.workload.zero_stage and run.plan.degree("replica") > 1
    return run.words("distributed_optimizer") if whole else {}


DISTRIBUTED_OPTIMIZER = Trial(
    name="distributed_optimizer",
    title="the distributed optimizer (ZeRO 1)",
    changes="time: of the optimizer; HBM: its state over the number of replicas; numerics: none",
    reason="every replica holds and updates the whole state; sharded, each holds a part, and no more is sent",
    source="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.18.0/docs/user-guide/features/dist_optimizer.md",
    settings=_state_in_parts,
    workload={"zero_stage": 1},
)


def _split_along_the_sequence(plan: Plan) -> str:
    return "default" if plan.sequence_parallel is None else str(plan.sequence_parallel).lower()


def _splits(run: Run) -> tuple[Value, ...]:
    said = run.workload.sequence_parallel if run.plan.sequence_parallel is None else run.plan.sequence_parallel
    return (PRESENT, set_to(sequence_parallel=True)) if said is False else (PRESENT,)


SEQUENCE_PARALLEL = Lever(
    name="sequence_parallel",
    title="sequence parallelism beside tensor parallelism",
    changes="time: of norms and residuals; HBM: their activations over the tensor degree; numerics: the order of sums",
    known="modelled",
    read=_split_along_the_sequence,
    values=_splits,
)


def _copied_in_nodes(run: Run) -> Mapping[str, str]:
    spread = run.node is not None and run.plan.degree("data") > run.node and run.workload.zero_stage == 3
    offered = spread and not run.workload.secondary_shards
    return dict.fromkeys(run.words("secondary_shards"), str(run.node)) if offered else {}


SECONDARY_SHARDS = Trial(
    name="secondary_shards",
    title="a second copy of the parameters inside each node (ZeRO++ hpZ)",
    changes="time: of gathers in the backward pass; HBM: 16-bit parameters over the devices of a node; numerics: none",
    reason="ZeRO 3 gathers every weight over all nodes twice; from a copy inside the node the backward pass does not",
    source="https://arxiv.org/abs/2306.10209",
    settings=_copied_in_nodes,
    of_run=lambda run: {"secondary_shards": run.node},
)
