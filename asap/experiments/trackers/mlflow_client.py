"""Access to an MLflow server: the one of ``MLFLOW_TRACKING_URI``, as MLflow itself reads it."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from asap.core.errors import AsapError, NotFoundError, ServiceError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain

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
