"""Muon instead of Adam: one moment a parameter instead of two, and another training."""

from asap.levers.lever import PRESENT, Lever, Run, Value
from asap.plans import Plan
from asap.plans.degrees import workload_under


def _read(plan: Plan) -> str:
    return plan.optimizer or "default"


def _values(run: Run) -> tuple[Value, ...]:
    now = (workload_under(run.plan, run.workload).optimizer or "adam").casefold()
    return (PRESENT, Value(_with_muon)) if now.startswith("adam") else (PRESENT,)


def _with_muon(plan: Plan) -> Plan:
    return plan.model_copy(update={"optimizer": "muon"})


LEVER = Lever(
    name="optimizer",
    title="Muon",
    changes="time: the products of its orthogonalisation, which no prediction holds; HBM: 4 bytes a parameter;"
    " numerics: all updates",
    known="modelled",
    read=_read,
    values=_values,
    on_request=True,
)
