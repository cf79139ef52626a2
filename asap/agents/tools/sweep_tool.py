"""The tool that varies one thing of a run and predicts each value."""

from dataclasses import replace
from typing import Annotated, get_args

from pydantic import Field

from asap.agents.tools.plan_tools import prediction_row
from asap.agents.tools.results import Answer, answering, named
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.tables import printed, table
from asap.core.errors import AsapError, InsufficientEvidenceError, UsageError
from asap.core.numbers import digits
from asap.experiments.create import Statement
from asap.experiments.hardware import refer_to_hardware
from asap.plans import Plan
from asap.plans.axes import Axis
from asap.plans.plan import SETTINGS
from asap.plans.stretch import over, with_degree
from asap.prediction.predict_study import expect
from asap.study.changed import changed_study
from asap.study.study import Study, read_plan

Values = Annotated[list[str], Field(min_length=2, max_length=12)]
_COUNTS = ("global_batch", "sequence_length", "slices")
_VARIED = tuple(dict.fromkeys(("hardware", *_COUNTS, *get_args(Axis), *SETTINGS)))


class SweepTool:
    """A tool over the engine's predictions."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def sweep(self, experiment: str, vary: str, values: Values, plan: str | None = None) -> Answer:
        """Predict a run with one thing varied over several values: step time, HBM and fit of each, in one table.

        Args:
            experiment: ID of the experiment.
            vary: global_batch, sequence_length, hardware, slices; an axis (replica, data, seq, model, expert, stage),
                whose difference FSDP takes; or a setting of a plan: remat, microbatches, loss_chunks, …
            values: two to twelve, such as 128, 256, 512; full, minimal; v5e-128, v5e-256.
            plan: in which plan, such as `data=32 model=4`; by default in what runs now.
        """
        study = self._studies.study(experiment)
        base = read_plan(study, plan) if plan else study.plan
        if base is None:
            raise InsufficientEvidenceError("the current plan is not known", where=experiment, hint="name the plan")
        if vary not in _VARIED:
            raise UsageError("cannot be varied", where=named(vary), hint=f"one of {', '.join(_VARIED)}")
        return {"plan": str(base), "rows": table([_row(study, base, vary, value) for value in values])}


def _row(study: Study, base: Plan, vary: str, value: str) -> Answer:
    try:
        changed, plan = _varied(study, base, vary, value)
        (found,) = expect(changed, [read_plan(changed, str(plan))])
    except AsapError as error:
        return {vary: named(value), "not_predicted": named(error.message)}
    row = {vary: named(value)} | prediction_row(found) | {"tokens_per_second": printed(found.tokens_per_second)}
    if changed is study:
        return row
    if found.step_time is None:
        return {vary: named(value), "not_predicted": "its step time follows from the architecture, not on record"}
    del row["vs_now"]
    return row


def _varied(study: Study, base: Plan, vary: str, value: str) -> tuple[Study, Plan]:
    """The run and the plan with one value; raises AsapError where it cannot be read or cannot run."""
    if vary == "hardware":
        base = over(base, refer_to_hardware(value)[0].devices or base.ici.devices)
        return changed_study(study, Statement(hardware=value, plan=str(base))), base
    if vary in _COUNTS:
        return changed_study(study, replace(Statement(plan=str(base)), **{vary: digits(value)})), base
    if vary in get_args(Axis):
        return study, with_degree(base, vary, digits(value) or 0)
    setting = Plan.parse(f"{vary}={value}")
    return study, base.model_copy(update={vary: getattr(setting, vary)})
