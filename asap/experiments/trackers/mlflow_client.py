"""Access to an MLflow server: the one of ``MLFLOW_TRACKING_URI``, as MLflow itself reads it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from asap.core.errors import AsapError, NotFoundError, ServiceError, UsageError
from asap.core.secrets import redacted
from asap.core.text import plain

PREFIX = "mlflow:"


def is_mlflow(target: str) -> bool:
    """Whether a target is a run of MLflow: ``mlflow:RUN_ID``."""
    return target.startswith(PREFIX)


@contextmanager
def mlflow_client(target: str) -> Iterator[tuple[Any, str]]:
    """An ``mlflow.MlflowClient``, and the ID of the run that a target names.

    Raises:
        UsageError: the extra is not installed, or the target names no run.
        NotFoundError: there is no such run.
        ServiceError: the server cannot be reached, or refuses.
    """
    run_id = target.removeprefix(PREFIX)
    where = plain(target, 80)
    if not run_id.isalnum():
        raise UsageError("is not an MLflow run", where=where, hint="write mlflow:RUN_ID")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        mlflow = import_module("mlflow")
    except ImportError:
        raise UsageError("runs of MLflow need the extra mlflow", hint="pip install 'asap[mlflow]'") from None
    try:
        yield mlflow.MlflowClient(), run_id
    except AsapError:
        raise
    except mlflow.exceptions.MlflowException as error:
        if error.error_code == "RESOURCE_DOES_NOT_EXIST":
            raise NotFoundError("MLflow has no such run", where=where, hint="is MLFLOW_TRACKING_URI right?") from error
        raise ServiceError(f"MLflow: {plain(redacted(str(error)), 200)}", where=where) from error
    except OSError as error:
        raise ServiceError(f"MLflow: {plain(redacted(str(error)), 200)}", where=where) from error
