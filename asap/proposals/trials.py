"""Settings that no search varies, offered for a test beside the proposals."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from asap.core.units import format_percent
from asap.diagnosis.facts import STEP_TIME_VARIATION
from asap.levers.lever import Trial
from asap.levers.table import TRIALS
from asap.models import Workload
from asap.plans.launchers import Stack
from asap.plans.maxtext.overrides import paste_line
from asap.plans.megatron.written_arguments import command_line
from asap.prediction.predict_study import expect
from asap.proposals.selection.search import run_of
from asap.study.changed import without_step_time
from asap.study.study import Study


class OfferedTrial(BaseModel):
    """A setting to test; its statement says what the step model expects, if anything."""

    model_config = ConfigDict(frozen=True)

    name: str
    title: str = Field(description="in a few words, for a sentence")
    statement: str
    gain: float | None = Field(default=None, description="share of the step that is expected to be saved, if modelled")
    source: str
    stack: Stack = "maxtext"
    settings: dict[str, str] = Field(description="in the words of the run's stack")

    @property
    def line(self) -> str:
        """What to paste."""
        if self.stack == "maxtext":
            return paste_line(self.settings)
        if self.stack == "megatron":
            return command_line({key: value == "true" or value for key, value in self.settings.items()})
        return " ".join(f"--{key}" if value == "true" else f"--{key}={value}" for key, value in self.settings.items())


def trials_of(study: Study) -> tuple[OfferedTrial, ...]:
    """What is worth a test in a run: what no prediction tells, and what is expected to save more than steps vary by."""
    if study.plan is None or not study.experiment.hyperparameters:
        return ()
    run = run_of(study)
    expected = [(trial, _gain(study, trial)) for trial in TRIALS if trial.settings(run)]
    return tuple(
        OfferedTrial(
            name=trial.name,
            title=trial.title,
            statement=f"{trial.title[0].upper()}{trial.title[1:]}: {trial.reason}; {_in_words(gain)}.",
            gain=gain,
            source=trial.source,
            stack=run.stack,
            settings=dict(trial.settings(run)),
        )
        for trial, gain in expected
        if gain is None or gain >= STEP_TIME_VARIATION
    )


def most_promising(trials: Iterable[OfferedTrial]) -> OfferedTrial | None:
    """The trial that is expected to save most, of those whose effect is modelled."""
    return max((trial for trial in trials if trial.gain is not None), key=lambda trial: trial.gain or 0.0, default=None)


def _gain(study: Study, trial: Trial) -> float | None:
    """Share of the step that the model expects a trial to save; ``None`` where it does not model it."""
    workload, model = study.experiment.workload, study.experiment.model
    if not trial.workload or study.slice is None or model is None or model.missing():
        return None
    now, then = _step(study, workload), _step(study, workload.model_copy(update=dict(trial.workload)))
    return None if now is None or then is None else 1 - then / now


def _in_words(gain: float | None) -> str:
    if gain is None:
        return "only a run tells what it brings"
    return f"modelled, the step takes {format_percent(gain)} less time with it"


def _step(study: Study, workload: Workload) -> float | None:
    """Seconds of what runs, by the architecture, with another workload."""
    assert study.plan is not None
    changed = without_step_time(study, study.experiment.model_copy(update={"workload": workload}))
    step = expect(changed, [study.plan])[0].step_time
    return None if step is None else step.value
