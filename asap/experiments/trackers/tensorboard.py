"""Runs of TensorBoard: event files, and the record in them."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from asap.core.errors import ConfigError, NotFoundError, UsageError
from asap.core.files import exists, user_path
from asap.core.remote import is_remote, local_tree
from asap.core.text import plain
from asap.experiments.trackers.tracked_run import TrackedRun, step_time_metric

EVENTS = "tfevents"
"""Every name of an event file contains it."""
_TEXT = "/text_summary"
"""What PyTorch and tensorboardX append to the tag of a text."""
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
        raise UsageError(
            "runs of TensorBoard need the extra tensorboard", hint="pip install 'asap[tensorboard]'"
        ) from None
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


PREFIX = "tensorboard:"
_PROFILE = ".xplane.pb"
_SHOWN = 5


def is_tensorboard(target: str) -> bool:
    """Whether a target is a log directory of TensorBoard: ``tensorboard:DIR``."""
    return target.startswith(PREFIX)


def read_tensorboard(target: str) -> TrackedRun:
    """What TensorBoard knows of ``tensorboard:DIR``: texts as parameters, step times, the profile beside them.

    Raises:
        NotFoundError: there is no such folder, or it has no event file.
        UsageError: the extra is not installed, or the folder holds several runs.
        ConfigError: an event file is damaged.
        ServiceError: an object store cannot be reached.
    """
    address = target.removeprefix(PREFIX)
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
