"""Tools on a run with something else than its plan changed, and on what the compiler says of a plan."""

from typing import Annotated

from pydantic import Field

from asap.agents.tools.plan_tools import prediction_row
from asap.agents.tools.results import Answer, answering, named
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.tables import printed, table
from asap.core.errors import InsufficientEvidenceError, UsageError
from asap.core.units import GIB, format_bytes
from asap.experiments import Experiment
from asap.experiments.create import Statement
from asap.prediction.predict_study import expect
from asap.study.changed import changed_study
from asap.study.study import read_plan

Counts = Annotated[int, Field(ge=1)]
BUDGET = 3
"""Plans that one session may have compiled by a tool: each takes minutes."""
SECONDS = 300.0
MEMORY = 8 * GIB


class ScenarioTools:
    """Tools that change the run, or compile it."""

    def __init__(self, studies: StudyCache):
        self._studies = studies
        self._compiled = 0

    @answering
    def what_if(
        self,
        experiment: str,
        plan: str | None = None,
        global_batch: Counts | None = None,
        sequence_length: Counts | None = None,
        hardware: str | None = None,
        slices: Counts | None = None,
        precision: str | None = None,
        optimizer: str | None = None,
    ) -> Answer:
        """Predict the run under another batch, sequence length, hardware, precision or optimizer, several at once.

        Args:
            experiment: ID of the experiment.
            plan: what runs then, such as `data=32 model=4`; by default what runs now. On other hardware, name it.
            global_batch: sequences in a step, whole job.
            sequence_length: tokens in a sequence.
            hardware: chip and size, such as v5e-256 or h100-64.
            slices: slices of the job.
            precision: bf16, fp8, int8, …
            optimizer: adamw, adafactor, …
        """
        study = self._studies.study(experiment)
        said = Statement(
            plan=plan, hardware=hardware, slices=slices, global_batch=global_batch, sequence_length=sequence_length
        )
        changed = changed_study(study, said, precision, optimizer)
        if study.plan is None or changed.plan is None:
            raise InsufficientEvidenceError("the current plan is not known", where=experiment, hint="name the plan")
        now, then = expect(study, [study.plan])[0], expect(changed, [read_plan(changed, str(changed.plan))])[0]
        rows = [{"run": "now"} | prediction_row(now), {"run": "changed"} | prediction_row(then)]
        for row, prediction in zip(rows, (now, then), strict=True):
            row["tokens_per_second"] = printed(prediction.tokens_per_second)
            row.pop("vs_now", None)
        return {"runs": table(rows), "notes": list(dict.fromkeys((*then.notes, *changed.warnings)))}

    @answering
    def verify(self, experiment: str, plan: str) -> Answer:
        """Compile the training step under one plan with the real TPU compiler: does it fit, which collectives.

        Takes minutes; a session has three such compilations. Ask for it where a prediction decides and is in doubt.

        Args:
            experiment: ID of the experiment.
            plan: such as `data=32 model=4`; what it leaves out stays as it is now.
        """
        from asap.compiler.programs.options import CompileLimits, CompileOptions
        from asap.compiler.verify import verify

        study = self._studies.study(experiment)
        parsed = read_plan(study, plan)
        if self._compiled >= BUDGET:
            raise UsageError(f"{BUDGET} plans were compiled in this session, no more are allowed", where="verify")
        self._compiled += 1
        (found,) = verify(study.experiment, [parsed], CompileOptions(limits=CompileLimits(SECONDS, MEMORY)))
        return {
            "plan": str(found.plan),
            "statement": found.verdict,
            "step_time": printed(found.calibrated_step_time or found.step_time),
            "collectives": table(
                [
                    {"kind": row.kind, "axes": row.axes, "count": round(row.count), "hbm": format_bytes(row.size_bytes)}
                    for row in found.collectives
                ]
            ),
            "notes": [*found.differences, *found.notes],
        }

    @answering
    def list_experiments(self) -> Answer:
        """List the experiments on record: ID, model, hardware, plan."""
        return {"experiments": table([_listed(record) for record in self._studies.store.list().experiments])}


def _listed(record: Experiment) -> Answer:
    model, hardware = record.model, record.hardware
    return {
        "experiment": record.id,
        "model": named(model.name) if model and model.name else None,
        "hardware": named(hardware.name or hardware.chip or ""),
        "devices": hardware.devices,
        "plan": str(record.plan) if record.plan else None,
    }
