"""How a batch is worked on: its size, microbatches, virtual stages, the loss in parts."""

from asap.levers.lever import PRESENT, Lever, Run, Value, set_to
from asap.plans import Plan
from asap.stacks.registry import contracts

_MOST = 32
_LARGEST = 8
"""Sequences of a microbatch that are tried: published runs of PyTorch stacks use 1 to 8."""


def _numbers(run: Run) -> tuple[Value, ...]:
    batch, now = run.workload.global_batch, run.plan.microbatches
    if batch is None:
        return (PRESENT,)
    if not contracts()[run.stack].sets_micro_batch:
        return (
            PRESENT,
            *(set_to(microbatches=count) for count in _counts(run.plan, batch) if count != (now or 1)),
        )
    if now is None:
        return (PRESENT,)
    each = max(batch // (run.plan.batch_shards * now), 1)
    return tuple(Value(sequences=size) for size in [each, *(s for s in (1, 2, 4, _LARGEST) if s != each)])


def _counts(plan: Plan, batch: int) -> list[int]:
    """Powers of two; in a pipeline, multiples of its stages, as MaxText wants them."""
    least = plan.degree("stage")
    return [
        least * 2**power for power in range(_MOST.bit_length()) if 2**power <= _MOST and batch % (least * 2**power) == 0
    ]


MICROBATCHES = Lever(
    name="microbatches",
    title="microbatches",
    changes="time: sharded weights are gathered for each, and a pipeline's bubble; HBM: activations; numerics: none",
    known="modelled",
    read=lambda plan: str(plan.microbatches or 1),
    values=_numbers,
)


_REPEATS = (1, 2, 4)


def _virtual_stages(run: Run) -> tuple[Value, ...]:
    if run.plan.degree("stage") == 1:
        return (PRESENT,)
    return (
        PRESENT,
        *(set_to(pipeline_repeats=count) for count in _REPEATS if count != run.plan.pipeline_repeats),
    )


PIPELINE_REPEATS = Lever(
    name="pipeline_repeats",
    title="virtual pipeline stages",
    changes="time: a shorter bubble, more messages; HBM: more microbatches in flight; numerics: none",
    known="modelled",
    read=lambda plan: str(plan.pipeline_repeats),
    values=_virtual_stages,
)


_PARTS = (4, 16)


def _losses(run: Run) -> tuple[Value, ...]:
    now, tokens = run.plan.loss_chunks or run.workload.loss_chunks or 1, run.workload.tokens or 0
    return (PRESENT, *(set_to(loss_chunks=count) for count in _PARTS if count > now and tokens % count == 0))


LOSS_CHUNKS = Lever(
    name="loss_chunks",
    title="loss in parts",
    changes="time: little; HBM: logits, divided by the parts; numerics: none but the order of a sum",
    known="modelled",
    read=lambda plan: str(plan.loss_chunks or "default"),
    values=_losses,
)


TIMES = (2, 4, 8)


def _batches(run: Run) -> tuple[Value, ...]:
    now = run.plan.global_batch or run.workload.global_batch
    return (PRESENT, *(set_to(global_batch=now * times) for times in TIMES)) if now else (PRESENT,)


GLOBAL_BATCH = Lever(
    name="global_batch",
    title="larger batch",
    changes="time: less communication per token; HBM: activations; numerics: fewer, larger steps",
    known="modelled",
    read=lambda plan: str(plan.global_batch or "default"),
    values=_batches,
    on_request=True,
)
