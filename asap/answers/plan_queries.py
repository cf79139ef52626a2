"""Queries on plans: what is expected of them, in what order, why, and what to paste."""

from typing import Annotated

from pydantic import Field

from asap.answers.figure import Answer, Figure, Lines, PlanName, Query
from asap.answers.inquiry import Inquiry
from asap.answers.plan_row import (
    PlanPart,
    PlanRow,
    billion_tokens,
    memory_parts,
    notes_of,
    plan_name,
    plan_row,
    time_parts,
)
from asap.core.errors import PlanError
from asap.experiments.configuration import OPTIONS
from asap.hardware.instances import chips_per_node
from asap.plans import Plan
from asap.proposals.launch import line_elsewhere, mesh_that_stays, overrides_of
from asap.proposals.proposal import ChangedSetting, Overrides
from asap.proposals.reasons.explain import changed_settings
from asap.stacks.launchers import COMMAND, Stack, stack_of, start_command
from asap.stacks.registry import contracts
from asap.study.study import Study


class PredictAnswer(Answer):
    """What is expected of one plan."""

    plan: PlanRow
    change: tuple[ChangedSetting, ...] = Field(default=(), description="what it sets differently from what runs")
    time: tuple[PlanPart, ...] = Field(default=(), description="where the step goes")
    memory: tuple[PlanPart, ...] = Field(default=(), description="what takes HBM")
    billion_tokens: Figure | None = Field(default=None, description="time to train on so many")
    chip_hours: Figure | None = Field(default=None, description="that these take")
    notes: tuple[str, ...] = ()
    basis: str = Field(description="how it was predicted")


class Predict(Query):
    """Predict one plan in full: step time with its 90 % interval, throughput, MFU, HBM, the parts of both, and what a
    billion tokens cost."""

    plan: PlanName

    def answer(self, inquiry: Inquiry) -> PredictAnswer:
        """Of the plan as it would run."""
        plan = inquiry.plan(self.plan)
        (found,) = inquiry.predictions([plan])
        return PredictAnswer(
            plan=plan_row(inquiry, found),
            change=changes_of(inquiry, plan),
            time=time_parts(inquiry, found),
            memory=memory_parts(inquiry, found),
            billion_tokens=billion_tokens(inquiry, found),
            chip_hours=billion_tokens(inquiry, found, of_chips=True),
            notes=notes_of([found]),
            basis=found.method.replace("_", " "),
        )


class CompareAnswer(Answer):
    """Plans side by side."""

    plans: tuple[PlanRow, ...]
    not_predicted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Compare(Query):
    """Predict several plans side by side, the fastest first."""

    plans: Annotated[tuple[PlanName, ...], Field(min_length=2, max_length=8)]

    def answer(self, inquiry: Inquiry) -> CompareAnswer:
        """The fastest first; what cannot run is named beside."""
        plans, refused = [], []
        for name in self.plans:
            try:
                plans.append(inquiry.plan(name))
            except PlanError as error:
                refused.append(f"{name}: {error.message}")
        found = inquiry.predictions(list(dict.fromkeys(plans)))
        found.sort(key=lambda one: getattr(one.relative_step_time or one.step_time, "value", float("inf")))
        return CompareAnswer(
            plans=tuple(plan_row(inquiry, one) for one in found),
            not_predicted=tuple(refused),
            notes=notes_of(found),
        )


class CandidatesAnswer(Answer):
    """What could run instead, in its order."""

    proposals: tuple[str, ...] = Field(description="plans that are proposed, best first")
    now: PlanRow | None
    candidates: tuple[PlanRow, ...]
    considered: int = Field(description="valid configurations that were evaluated")
    advice: str | None = Field(default=None, description="what to run first, or to keep what runs")
    situation: str | None = Field(default=None, description="what decides which advice is needed")
    ruled_out: tuple[str, ...] = Field(default=(), description="by facts that were stated")
    notes: tuple[str, ...] = ()


class Candidates(Query):
    """List the best valid configurations with their predictions, best first by gain after doubt. `proposals` are those
    that the engine proposes, each of another strategy."""

    limit: Annotated[int, Field(ge=1, le=50)] = 6

    def answer(self, inquiry: Inquiry) -> CandidatesAnswer:
        """All that are proposed, and the first of the others."""
        revised, order, now = inquiry.revised, inquiry.order, inquiry.study.plan
        ranked, said = revised.ranked, inquiry.proposed
        shown = [
            (rank, one.prediction)
            for rank, one in enumerate(ranked.candidates, 1)
            if rank <= self.limit or one.plan in order
        ]
        return CandidatesAnswer(
            proposals=tuple(plan.beside(now) for plan in order),
            now=plan_row(inquiry, ranked.incumbent) if ranked.incumbent else None,
            candidates=tuple(plan_row(inquiry, one, plan_name(inquiry, one.plan)) for _, one in shown),
            considered=ranked.considered,
            advice=said.recommendation.statement if said else None,
            situation=said.situation.statement if said and said.situation else None,
            ruled_out=tuple(f"{plan}: {fact}" for plan, fact in list(revised.excluded.items())[: self.limit]),
            notes=(*notes_of([one for _, one in shown]), *(said.warnings if said else ())),
        )


class LineAnswer(Answer):
    """What to paste to run a plan."""

    line: Lines
    exports: Lines
    plan: str
    stack: str
    command: Lines = ()
    stays: tuple[str, ...] = Field(default=(), description="degrees that are as they are now")
    change: tuple[ChangedSetting, ...] = ()


class Line(Query):
    """Give the line to paste into the run's own launcher for a plan, in its syntax, with the flags that it needs."""

    plan: PlanName = "1"
    stack: Stack | None = Field(default=None, description="another launcher than the run's own")
    command: bool = Field(default=False, description="the whole command as well")

    def answer(self, inquiry: Inquiry) -> LineAnswer:
        """In the launcher's own words; where nothing is proposed, of the change that is advised in its place."""
        if self.plan == "1" and not inquiry.order and (advised := self._advised(inquiry)):
            return advised
        study, plan = inquiry.study, inquiry.plan(self.plan)
        if self.stack is not None:
            line = line_elsewhere(study, plan, self.stack)
            return LineAnswer(
                line=tuple(line.splitlines()), exports=(), plan=str(plan), stack=contracts()[self.stack].title,
                change=changes_of(inquiry, plan),
            )  # fmt: skip
        found = self._lines(study, plan)
        text = found.text
        whole = self._whole(inquiry, found.stack, text) if self.command else ""
        title, framework = contracts()[found.stack].title, study.experiment.workload.framework
        return LineAnswer(
            command=tuple(whole.splitlines()),
            line=tuple(text.splitlines()),
            exports=found.exports,
            plan=str(plan),
            stack=title if found.stack != "settings" else f"{framework} {title}" if framework else "plan",
            stays=mesh_that_stays(study, plan),
            change=changes_of(inquiry, plan),
        )

    def _advised(self, inquiry: Inquiry) -> LineAnswer | None:
        found = inquiry.proposed
        if found is None or not (lines := "\n".join(found.recommendation.lines).splitlines()):
            return None
        plan = found.smallest_fit.plan if found.smallest_fit else inquiry.now
        title = contracts()[stack_of(inquiry.study.experiment.workload.framework)].title
        return LineAnswer(line=tuple(lines), exports=(), plan=str(plan), stack=title, change=changes_of(inquiry, plan))

    def _lines(self, study: Study, plan: Plan) -> Overrides:
        """Of what runs now nothing where its settings do not follow from its plan: nothing is to be changed."""
        try:
            return overrides_of(study, plan, whole=plan == study.plan)
        except PlanError:
            if plan != study.plan:
                raise
            return Overrides(stack=stack_of(study.experiment.workload.framework))

    def _whole(self, inquiry: Inquiry, stack: Stack, line: str) -> str:
        study = inquiry.study
        devices = study.slice.devices if study.slice else 1
        of_chip = chips_per_node(study.slice.chip) if study.slice else None
        gpus = min(devices, study.experiment.hardware.node or of_chip or devices)
        files = () if OPTIONS in (sources := study.experiment.provenance) else sources.values()
        return start_command(stack, line, sources.get(COMMAND), files, gpus, max(1, devices // gpus))


def changes_of(inquiry: Inquiry, plan: Plan) -> tuple[ChangedSetting, ...]:
    """What a plan sets differently from what runs."""
    study = inquiry.study
    if study.plan is None or plan == study.plan:
        return ()
    return changed_settings(plan, study.plan, study.experiment.workload)
