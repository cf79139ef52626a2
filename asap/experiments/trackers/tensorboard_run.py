"""A log directory of TensorBoard as a run, here or on an object store."""

from pathlib import Path

from asap.core.errors import NotFoundError, UsageError
from asap.core.files import exists, user_path
from asap.core.remote import is_remote, local_tree
from asap.core.text import plain
from asap.experiments.trackers.tensorboard_events import EVENTS, Events, read_events
from asap.experiments.trackers.tracked_run import TrackedRun, step_time_metric

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
