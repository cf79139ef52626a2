"""Settings that only a test tells, offered beside the proposals."""

from pydantic import BaseModel, ConfigDict, Field

from asap.levers.table import TRIALS
from asap.plans.launchers import Stack
from asap.plans.maxtext.overrides import paste_line
from asap.plans.megatron.arguments import command_line
from asap.proposals.selection.search import run_of
from asap.study.study import Study


class OfferedTrial(BaseModel):
    """A setting to test; its effect is not predicted."""

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
            statement=f"{trial.title[0].upper()}{trial.title[1:]}: {trial.reason}; only a run tells what it brings.",
            source=trial.source,
            stack=run.stack,
            settings=dict(settings),
        )
        for trial in TRIALS
        if (settings := trial.settings(run))
    )
