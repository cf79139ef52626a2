"""A run of MLflow: its parameters, the metric of its step time, its newest profile."""

from pathlib import Path
from typing import Any

from asap.core.files import home, private_folder
from asap.experiments.trackers.mlflow_client import PREFIX, mlflow_client
from asap.experiments.trackers.tracked_run import TrackedRun, step_time_metric

PROFILE = ".xplane.pb"


def read_mlflow(target: str) -> TrackedRun:
    """What MLflow knows of ``mlflow:RUN_ID``; raises like :func:`mlflow_client`."""
    with mlflow_client(target) as (client, run_id):
        run = client.get_run(run_id)
        metric = step_time_metric(run.data.metrics)
        history = client.get_metric_history(run_id, metric) if metric else []
        return TrackedRun(
            origin=f"{PREFIX}{run_id}",
            parameters=run.data.params,
            metric=metric,
            values=[point.value for point in sorted(history, key=lambda point: point.step)],
            name=run.info.run_name,
            profile=_profile(client, run_id),
        )


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
    place = private_folder(home() / "remote" / "mlflow" / run_id)
    copies = [
        client.download_artifacts(run_id, path, str(place)) for path in found if path.rpartition("/")[0] == newest
    ]
    return Path(copies[0]).parent
