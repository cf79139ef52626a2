"""Logs results back to a run of MLflow: tags to filter by, and files to look at."""

from collections.abc import Mapping

from asap.experiments.trackers.mlflow_client import mlflow_client

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
