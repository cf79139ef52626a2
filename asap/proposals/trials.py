"""Settings that no search varies, offered for a test beside the proposals."""

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import format_percent
from asap.levers.lever import Trial
from asap.levers.table import TRIALS
from asap.models import Workload
from asap.plans.launchers import Stack
from asap.plans.maxtext.overrides import paste_line
from asap.plans.megatron.arguments import command_line
from asap.prediction.predict_study import expect
from asap.proposals.selection.search import run_of
from asap.study.changed import without_step_time
from asap.study.study import Study


class OfferedTrial(BaseModel):
    """A setting to test; its statement says what the step model expects, if anything."""

    model_config = ConfigDict(frozen=True)

    name: str
    statement: str
    source: str
    stack: Stack = "maxtext"
    settings: dict[str, str] = Field(description="in the words of the run's stack")

    @property
    def line(self) -> str:
        """What to paste."""
        if self.stack == "maxtext":
            return paste_line(self.settings)
        if self.stack == "megatron":
            return command_line(self.settings)
        return " ".join(f"--{key}" if value == "true" else f"--{key}={value}" for key, value in self.settings.items())


def trials_of(study: Study) -> tuple[OfferedTrial, ...]:
    """What is worth a test in a run, and no prediction tells."""
    if study.plan is None or not study.experiment.hyperparameters:
        return ()
    run = run_of(study)
    return tuple(
        OfferedTrial(
            name=trial.name,
            statement=f"{trial.title[0].upper()}{trial.title[1:]}: {trial.reason}; {_expected(study, trial)}.",
            source=trial.source,
            stack=run.stack,
            settings=dict(settings),
        )
        for trial in TRIALS
        if (settings := trial.settings(run))
    )


def _expected(study: Study, trial: Trial) -> str:
    """What the step model expects of a trial, in words."""
    workload, model = study.experiment.workload, study.experiment.model
    if trial.workload and study.slice is not None and model is not None and not model.missing():
        now, then = _step(study, workload), _step(study, workload.model_copy(update=dict(trial.workload)))
        if now is not None and then is not None:
            less = 1 - then / now
            return f"modelled, the step takes {format_percent(abs(less))} {'less' if less > 0 else 'more'} time with it"
    return "only a run tells what it brings"


def _step(study: Study, workload: Workload) -> float | None:
    """Seconds of what runs, by the architecture, with another workload."""
    assert study.plan is not None
    changed = without_step_time(study, study.experiment.model_copy(update={"workload": workload}))
    step = expect(changed, [study.plan])[0].step_time
    return None if step is None else step.value
