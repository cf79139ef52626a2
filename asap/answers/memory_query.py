"""The query on HBM: what takes it, whether a plan fits, and which single changes need less."""

from collections.abc import Iterator

import numpy as np
from pydantic import Field

from asap.answers.figure import Answer, Figure, Part, PlanName, Query, bare, change, subject_of
from asap.answers.inquiry import Inquiry
from asap.answers.plan_row import PlanPart, memory_parts, plan_row
from asap.core.units import Provenance
from asap.hardware.instances import chips_per_node
from asap.levers.table import changed_levers
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.launch import why_not_launched
from asap.proposals.reasons.explain import changed_settings
from asap.proposals.selection.search import search
from asap.proposals.selection.strategy import MESH
from asap.proposals.trials import trials_of
from asap.study.study import Study

_SAVINGS, _LOOKED_AT, _LEAST = 5, 60, 0.1
"""Changes that are shown, and looked at; the share of HBM that each has to save: judgement."""


class Saving(Part):
    """A single change of what runs that needs less HBM."""

    change: str
    vs_now: Figure | None = Field(description="change of the step time")
    hbm: Figure | None
    fits_odds: Figure | None


class MemoryAnswer(Answer):
    """HBM of the fullest device under a plan."""

    plan: str
    verdict: str
    fits_odds: Figure | None
    hbm: Figure | None
    capacity: Figure | None
    free: Figure | None
    host_per_device: Figure | None = Field(default=None, description="kept in host memory")
    host_per_node: Figure | None = None
    measured: Figure | None = Field(default=None, description="highest use that the profile of what runs shows")
    parts: tuple[PlanPart, ...] = ()
    savings: tuple[Saving, ...] = Field(default=(), description="single changes of what runs that need less")


class Memory(Query):
    """Say whether a plan fits into HBM, how likely, what takes the memory, and which single changes need less."""

    plan: PlanName = "now"

    def answer(self, inquiry: Inquiry) -> MemoryAnswer:
        """Predicted, or by the compiler where it was asked."""
        plan = inquiry.plan(self.plan)
        (found,) = inquiry.predictions([plan])
        memory, of = found.memory, subject_of(plan, inquiry.study.plan)
        profile = inquiry.study.profile
        peak = profile.peak_hbm_bytes if profile and plan == inquiry.study.plan else None
        source = profile.source if profile else ""
        measured = bare(of, "measured_hbm", peak, "bytes", source)
        row = plan_row(inquiry, found)
        if memory is None:
            return MemoryAnswer(
                plan=str(plan), verdict="not known", fits_odds=None, hbm=None, capacity=None, free=None,
                measured=measured,
            )  # fmt: skip
        kind, from_ = memory.total.provenance, memory.total.source
        room = memory.capacity_bytes - memory.total.value
        return MemoryAnswer(
            plan=str(plan),
            verdict=memory.verdict,
            fits_odds=row.fits_odds,
            hbm=row.hbm,
            capacity=bare("run", "hbm_capacity", memory.capacity_bytes, "bytes", "the chip", Provenance.STATED),
            free=bare(of, "hbm_free", room, "bytes", from_, kind),
            host_per_device=bare(of, "host_memory", memory.host_bytes or None, "bytes", from_, kind),
            host_per_node=bare(of, "host_memory_of_a_node", _of_node(inquiry, memory.host_bytes), "bytes", from_, kind),
            measured=measured,
            parts=memory_parts(inquiry, found),
            savings=_savings(inquiry, found) if plan == inquiry.study.plan else (),
        )


def _of_node(inquiry: Inquiry, each: float) -> float | None:
    """Bytes of a node's host memory, of which each device needs so many."""
    hardware = inquiry.study.slice
    node = chips_per_node(hardware.chip) if hardware else None
    return each * min(node, hardware.devices) if each and node and hardware else None


def _savings(inquiry: Inquiry, now: Prediction) -> tuple[Saving, ...]:
    """Changes of the mesh, of one lever or of one setting beside the plan, those that cost the least time first."""
    study, held, found = inquiry.study, now.memory.total.value if now.memory else 0.0, list[Saving]()
    for one in inquiry.predictions(list(_smaller(study))) if study.plan else ():
        row, changed = plan_row(inquiry, one), changed_settings(one.plan, now.plan, study.experiment.workload)
        said = ", ".join(map(str, changed))
        found.append(Saving(change=said, vs_now=row.vs_now, hbm=row.hbm, fits_odds=row.fits_odds))
    for trial in trials_of(study):
        if trial.saved_bytes > 0:
            hbm = bare(trial.name, "hbm", held - trial.saved_bytes, "bytes", trial.source, Provenance.MODELLED)
            slower = change(trial.name, trial.relative_step_time)
            found.append(Saving(change=trial.title, vs_now=slower, hbm=hbm, fits_odds=None))
    return tuple(sorted(found, key=lambda one: one.vs_now.value if one.vs_now else 0.0)[:_SAVINGS])


def _smaller(study: Study) -> Iterator[Plan]:
    """Plans that need less HBM than what runs: the fastest with another mesh, and of each lever."""
    found, kinds = search(study, lambda meshes: np.zeros(len(meshes))), set[tuple[object, ...]]()
    if found is None or study.plan is None:
        return
    evaluation, places = found.evaluation, np.concatenate([found.single_changes(), found.present_settings()])
    index = tuple(places.T)
    less = evaluation.hbm[index] < (1 - _LEAST) * evaluation.hbm[evaluation.present]
    order = np.argsort(-np.where(less, evaluation.gain[index], -np.inf), kind="stable")
    for row in order[: min(int(np.count_nonzero(less)), _LOOKED_AT)]:
        plan = found.plan(places[row])
        kind = ("mesh",) if places[row][MESH] else tuple(changed_levers(plan, study.plan))
        if kind not in kinds and why_not_launched(study, plan) is None:
            kinds.add(kind)
            yield plan
