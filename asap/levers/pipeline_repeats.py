"""Virtual stages: a device holds several short parts of the model, and the pipeline fills sooner."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan

TRIED = (1, 2, 4)


def _read(plan: Plan) -> str:
    return str(plan.pipeline_repeats)


def _values(run: Run) -> tuple[Value, ...]:
    if run.plan.degree("stage") == 1:
        return (PRESENT,)
    return (PRESENT, *(_repeats(count) for count in TRIED if count != run.plan.pipeline_repeats))


def _repeats(count: int) -> Value:
    return Value(lambda plan: plan.model_copy(update={"pipeline_repeats": count}))


LEVER = Lever(
    name="pipeline_repeats",
    title="virtual pipeline stages",
    changes="time: a shorter bubble, more messages; HBM: more microbatches in flight; numerics: none",
    known="modelled",
    read=_read,
    values=_values,
)
