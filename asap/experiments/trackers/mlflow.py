"""Runs of MLflow: read as records, and written to as stages of an optimization."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, NotFoundError, ServiceError, UsageError
from asap.core.files import home, private_folder
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.trackers.tracked_run import TrackedRun, step_time_metric

PREFIX = "mlflow:"
_NAMED = re.compile(r"[\w.-]{1,250}", re.ASCII)


def is_mlflow(target: str) -> bool:
    """Whether a target is a run of MLflow: ``mlflow:RUN_ID``, or ``mlflow:NAME``."""
    return target.startswith(PREFIX)


@contextmanager
def mlflow_client(target: str) -> Iterator[tuple[Any, str]]:
    """An ``mlflow.MlflowClient``, and the ID of the run that a target names: by its ID, or the newest of that name.

    Raises:
        UsageError: the extra is not installed, or the target names no run.
        NotFoundError: there is no such run.
        ServiceError: the server cannot be reached, or refuses.
    """
    named = target.removeprefix(PREFIX)
    where = plain(target, 80)
    if not _NAMED.fullmatch(named):
        raise UsageError("is not an MLflow run", where=where, hint="write mlflow:RUN_ID or mlflow:NAME")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        mlflow = import_module("mlflow")
    except ImportError:
        raise UsageError("runs of MLflow need the extra mlflow", hint="pip install 'asap[mlflow]'") from None
    try:
        client = mlflow.MlflowClient()
        yield client, named if named.isalnum() else _newest(client, named, where)
    except AsapError:
        raise
    except mlflow.exceptions.MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise NotFoundError("MLflow has no such run", where=where, hint="is MLFLOW_TRACKING_URI right?") from error
        raise ServiceError(f"MLflow: {plain(redacted(str(error)), 200)}", where=where) from error
    except OSError as error:
        raise ServiceError(f"MLflow: {plain(redacted(str(error)), 200)}", where=where) from error


def _newest(client: Any, name: str, where: str) -> str:
    """The ID of the newest run of a name, in whatever experiment."""
    experiments = [each.experiment_id for each in client.search_experiments()]
    found = client.search_runs(
        experiments, f"attributes.run_name = '{name}'", max_results=1, order_by=["attributes.start_time DESC"]
    )
    if not found:
        raise NotFoundError("MLflow has no run of that name", where=where, hint="is MLFLOW_TRACKING_URI right?")
    return found[0].info.run_id


LONGEST_TAG = 5000
"""Characters that MLflow takes (mlflow/utils/validation.py)."""


def publish(target: str, tags: Mapping[str, str], files: Mapping[str, str]) -> None:
    """Set tags and add text files as artifacts; raises like :func:`mlflow_client`.

    Args:
        target: ``mlflow:RUN_ID``.
        tags: name → value.
        files: path among the artifacts → text.
    """
    with mlflow_client(target) as (client, run_id):
        for name, value in tags.items():
            client.set_tag(run_id, name, value[:LONGEST_TAG])
        for path, text in files.items():
            client.log_text(run_id, text, path)


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
