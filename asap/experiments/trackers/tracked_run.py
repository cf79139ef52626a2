"""What a tracker knows of a run, and that as an experiment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from asap.core.errors import ConfigError
from asap.core.files import scratch_folder
from asap.core.text import plain
from asap.experiments.configuration import read_untrusted
from asap.experiments.experiment import Experiment
from asap.experiments.logs.formats import table
from asap.experiments.observed import FEWEST, MeasuredStep, steady_step

STEP_TIMES: dict[str, float] = table("steps")["tracked"]
"""Metric of a step's duration → its unit in seconds."""


@dataclass(frozen=True)
class TrackedRun:
    """A run as its tracker knows it."""

    origin: str
    """``mlflow:RUN_ID`` or ``tensorboard:DIR``."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    metric: str | None = None
    """The one of ``STEP_TIMES`` that it has."""
    values: Sequence[float] = ()
    """Of that metric, in the order of the steps."""
    name: str | None = None
    profile: Path | str | None = None


def step_time_metric(names: Iterable[str]) -> str | None:
    """The metric of a step's duration among the names of a run's metrics."""
    known = set(names)
    return next((name for name in STEP_TIMES if name in known), None)


def as_experiment(run: TrackedRun, experiment: Experiment) -> Experiment:
    """``experiment`` with what a run says; parameters that are no configuration become hyperparameters, with a note.

    Raises:
        ConfigError: it has too few steady steps.
    """
    experiment = _configured(experiment, run)
    found = {
        "description": plain(run.name, 200) if run.name else None,
        "measured": _measured(run),
        "profile_path": str(run.profile) if run.profile else None,
    }
    known = {name: value for name, value in found.items() if value is not None}
    return experiment.knowing(provenance=dict.fromkeys(known, run.origin), **known)


def _configured(experiment: Experiment, run: TrackedRun) -> Experiment:
    """What the parameters say, which trackers keep as text: read as a configuration file of the same keys."""
    if not run.parameters:
        return experiment
    values = {key: _value(text) for key, text in run.parameters.items()}
    with scratch_folder("run") as folder:
        path = folder / "params.yml"
        path.write_text(yaml.safe_dump(values), encoding="utf-8")
        try:
            found = read_untrusted(path, (), experiment)
        except ConfigError as error:
            note = f"The parameters of {run.origin} are not used as a configuration: {plain(error.message, 200)}."
            return experiment.knowing(note, hyperparameters=values)
    provenance = {name: said.replace(str(path), run.origin) for name, said in found.provenance.items()}
    return found.model_copy(update={"provenance": provenance})


def _value(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _measured(run: TrackedRun) -> MeasuredStep | None:
    if run.metric is None:
        return None
    times = [value * STEP_TIMES[run.metric] for value in run.values if value > 0]
    source = f"metric {run.metric} of {run.origin}"
    few = MeasuredStep(seconds=times[-1], source=source) if times else None
    return few if len(times) < FEWEST else steady_step(times, source)
