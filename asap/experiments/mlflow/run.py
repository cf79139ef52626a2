"""A run of MLflow as an experiment: parameters as its configuration, a metric as its step time, its profile."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from asap.core.files import home
from asap.core.text import plain
from asap.experiments.configuration import read_configuration
from asap.experiments.experiment import Experiment
from asap.experiments.measured_step import MeasuredStep, steady_step
from asap.experiments.mlflow.client import PREFIX, mlflow_client

STEP_TIMES = {
    "perf/step_time_seconds": 1.0,  # MaxText, metric_logger.py
    "train_step_timing in s": 1.0,  # NeMo, TimingCallback
    "iteration-time": 1.0,  # Megatron-LM, training_log
    "step_time_seconds": 1.0,
    "step_time_s": 1.0,
    "step_time": 1.0,
    "step_time_ms": 1e-3,
}
"""Metric of a step's duration → its unit in seconds."""
PROFILE = ".xplane.pb"
_FEWEST = 3


def read_mlflow(target: str, experiment: Experiment) -> Experiment:
    """``experiment`` with what the run ``mlflow:RUN_ID`` says.

    Raises:
        AsapError: what :func:`asap.experiments.mlflow.client.mlflow_client` and the readers of configurations raise.
    """
    with mlflow_client(target) as (client, run_id):
        run = client.get_run(run_id)
        origin = f"{PREFIX}{run_id}"
        experiment = _configured(experiment, run.data.params, origin)
        measured = _step_time(client, run_id, run.data.metrics)
        profile = _profile(client, run_id)
    found = {
        "description": plain(run.info.run_name, 200) if run.info.run_name else None,
        "measured": measured,
        "profile_path": str(profile) if profile else None,
    }
    known = {name: value for name, value in found.items() if value is not None}
    provenance = experiment.provenance | dict.fromkeys(known, origin)
    return experiment.model_copy(update={**known, "provenance": provenance})


def _configured(experiment: Experiment, params: Mapping[str, str], origin: str) -> Experiment:
    """What the parameters say, which MLflow keeps as text: read as a configuration file of the same keys."""
    if not params:
        return experiment
    with tempfile.TemporaryDirectory(prefix="asap-mlflow-") as folder:
        path = Path(folder) / "params.yml"
        path.write_text(yaml.safe_dump({key: _value(text) for key, text in params.items()}), encoding="utf-8")
        found = read_configuration(path, (), experiment)
    provenance = {field: said.replace(str(path), origin) for field, said in found.provenance.items()}
    return found.model_copy(update={"provenance": provenance})


def _value(text: str) -> object:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _step_time(client: Any, run_id: str, metrics: Mapping[str, float]) -> MeasuredStep | None:
    name = next((name for name in STEP_TIMES if name in metrics), None)
    if name is None:
        return None
    history = client.get_metric_history(run_id, name)
    times = [metric.value * STEP_TIMES[name] for metric in sorted(history, key=lambda m: m.step) if metric.value > 0]
    source = f"metric {name} of {PREFIX}{run_id}"
    if len(times) < _FEWEST:
        return MeasuredStep(seconds=times[-1], source=source) if times else None
    return steady_step(times, source)


def _profile(client: Any, run_id: str) -> Path | None:
    """The newest profile among the artifacts, copied here."""
    found, folders = [], [""]
    while folders:
        for entry in client.list_artifacts(run_id, folders.pop() or None):
            if entry.is_dir:
                folders.append(entry.path)
            elif entry.path.endswith(PROFILE):
                found.append(entry.path)
    if not found:
        return None
    newest = max(path.rpartition("/")[0] for path in found)
    place = home() / "remote" / "mlflow" / run_id
    place.mkdir(parents=True, exist_ok=True)
    copies = [
        client.download_artifacts(run_id, path, str(place)) for path in found if path.rpartition("/")[0] == newest
    ]
    return Path(copies[0]).parent
