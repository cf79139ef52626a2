"""Runs of MLflow and TensorBoard: read as records; those of MLflow written to as stages of an optimization."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError, ConfigError, NotFoundError, ServiceError, UsageError, extra_hint
from asap.core.files import exists, home, private_folder, user_path
from asap.core.remote import is_remote, local_tree
from asap.core.secrets import redacted
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.trackers.tracked_run import TrackedRun, as_experiment, step_time_metric

_MLFLOW = "mlflow:"
_NAMED = re.compile(r"[\w.-]{1,250}", re.ASCII)


@contextmanager
def mlflow_client(target: str) -> Iterator[tuple[Any, str]]:
    """An ``mlflow.MlflowClient``, and the ID of the run that a target names: by its ID, or the newest of that name.

    Raises:
        UsageError: the extra is not installed, or the target names no run.
        NotFoundError: there is no such run.
        ServiceError: the server cannot be reached, or refuses.
    """
    named = target.removeprefix(_MLFLOW)
    where = plain(target, 80)
    if not _NAMED.fullmatch(named):
        raise UsageError("is not an MLflow run", where=where, hint="write mlflow:RUN_ID or mlflow:NAME")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    try:
        mlflow = import_module("mlflow")
    except ImportError:
        raise UsageError("runs of MLflow need the extra mlflow", hint=extra_hint("mlflow")) from None
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


LONGEST_TAG = 5000  # characters that MLflow takes (mlflow/utils/validation.py)


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


_PROFILE = ".xplane.pb"


def read_mlflow(target: str) -> TrackedRun:
    """What MLflow knows of ``mlflow:RUN_ID``; raises like :func:`mlflow_client`."""
    with mlflow_client(target) as (client, run_id):
        run = client.get_run(run_id)
        metric = step_time_metric(run.data.metrics)
        history = client.get_metric_history(run_id, metric) if metric else []
        return TrackedRun(
            origin=f"{_MLFLOW}{run_id}",
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
            elif entry.path.endswith(_PROFILE):
                found.append(entry.path)
    if not found:
        return None
    newest = max(path.rpartition("/")[0] for path in found)
    place = private_folder(home() / "remote" / "mlflow" / run_id)
    copies = [
        client.download_artifacts(run_id, path, str(place)) for path in found if path.rpartition("/")[0] == newest
    ]
    return Path(copies[0]).parent


EVENTS = "tfevents"  # every name of an event file contains it
_TEXT = "/text_summary"  # what PyTorch and tensorboardX append to the tag of a text
_LONGEST_TEXT = 20_000


@dataclass
class Events:
    """Of one run."""

    scalars: dict[str, dict[int, float]] = field(default_factory=dict)
    """Tag → step → the value written last, as a run that restarts writes steps again."""
    texts: dict[str, str] = field(default_factory=dict)


def read_events(files: Iterable[Path]) -> Events:
    """All scalars and texts of a run's event files, taken in the order of their names, which start with a time.

    Raises:
        UsageError: the extra is not installed.
        ConfigError: a file is damaged, or none has an event.
    """
    try:
        loader = import_module("tensorboard.backend.event_processing.event_file_loader")
        arrays = import_module("tensorboard.util.tensor_util")
    except ImportError:
        raise UsageError("runs of TensorBoard need the extra tensorboard", hint=extra_hint("tensorboard")) from None
    logging.getLogger("tensorboard").setLevel(logging.ERROR)
    events, files = Events(), tuple(files)
    is_empty = True
    for path in sorted(files, key=lambda path: path.name):
        try:
            for event in loader.EventFileLoader(str(path)).Load():
                is_empty = False
                for value in event.summary.value:
                    _keep(events, value, event.step, arrays.make_ndarray)
        except Exception as error:  # TensorBoard and protobuf have exceptions of their own
            raise ConfigError(f"is not a TensorBoard event file: {plain(error, 120)}", where=plain(path)) from error
    if is_empty:
        raise ConfigError("holds no event that can be read", where=plain(files[0]) if files else "event files")
    return events


def _keep(events: Events, value: Any, step: int, to_array: Any) -> None:
    plugin = value.metadata.plugin_data.plugin_name
    if plugin == "scalars":
        events.scalars.setdefault(value.tag, {})[step] = float(to_array(value.tensor).item())
    elif plugin == "text":
        content = to_array(value.tensor).ravel()
        if content.size == 1:
            text = bytes(content[0])[:_LONGEST_TEXT].decode("utf-8", "replace")
            events.texts[value.tag.removesuffix(_TEXT)] = text


_TENSORBOARD = "tensorboard:"
_SHOWN = 5


def read_tensorboard(target: str) -> TrackedRun:
    """What TensorBoard knows of ``tensorboard:DIR``: texts as parameters, step times, the profile beside them.

    Raises:
        NotFoundError: there is no such folder, or it has no event file.
        UsageError: the extra is not installed, or the folder holds several runs.
        ConfigError: an event file is damaged.
        ServiceError: an object store cannot be reached.
    """
    address = target.removeprefix(_TENSORBOARD)
    root = local_tree(address, (EVENTS, _PROFILE)) if is_remote(address) else user_path(address).resolve()
    if not exists(root):
        raise NotFoundError("no such log directory", where=plain(target, 200))
    folders: dict[Path, list[Path]] = {}
    for path in [root] if root.is_file() else sorted(root.rglob(f"*{EVENTS}*")):
        if path.is_file():
            folders.setdefault(path.parent, []).append(path)
    runs = {folder: read_events(files) for folder, files in folders.items()}
    timed = {folder: events for folder, events in runs.items() if step_time_metric(events.scalars)}
    if not runs:
        raise NotFoundError("has no TensorBoard event file", where=plain(target, 200))
    if len(timed) > 1:
        names = ", ".join(str(folder.relative_to(root)) for folder in list(timed)[:_SHOWN])
        raise UsageError(f"holds {len(timed)} runs: {plain(names, 200)}", where=plain(target, 200), hint="name one")
    return _run(target, root, runs, next(iter(timed.values()), Events()))


def _run(target: str, root: Path, runs: dict[Path, Events], timed: Events) -> TrackedRun:
    metric = step_time_metric(timed.scalars)
    values = [value for _, value in sorted(timed.scalars[metric].items())] if metric else ()
    texts = {tag: text for events in runs.values() for tag, text in events.texts.items()}
    profile = root if root.is_dir() and next(root.rglob(f"*{_PROFILE}"), None) else None
    return TrackedRun(target, texts, metric, values, name=root.name, profile=profile)


def is_tracked(target: str) -> bool:
    """Whether a target is a run of a tracker: ``mlflow:RUN_ID``, ``tensorboard:DIR``."""
    return target.startswith((_MLFLOW, _TENSORBOARD))


def read_tracked(target: str, experiment: Experiment) -> Experiment:
    """``experiment`` with what the tracker knows of the run; what is on record already, such as its hardware, helps.

    Raises:
        UsageError: the target is no run of a tracker.
        AsapError: what :func:`read_mlflow` and :func:`read_tensorboard` raise.
    """
    if target.startswith(_MLFLOW):
        return as_experiment(read_mlflow(target), experiment)
    if target.startswith(_TENSORBOARD):
        return as_experiment(read_tensorboard(target), experiment)
    hint = "write mlflow:RUN_ID or tensorboard:DIR"
    raise UsageError("is not a run of MLflow or TensorBoard", where=f"--from {plain(target, 80)}", hint=hint)
