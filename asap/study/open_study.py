"""Looks up what a user names: an experiment of the store, a profile's path, or a run of a tracker."""

import json
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from asap.core.errors import ConfigError, NotFoundError, UsageError
from asap.core.files import exists, user_path
from asap.core.remote import is_remote, local_copy
from asap.core.text import plain
from asap.experiments import Experiment, ExperimentStore
from asap.experiments.configuration import files_of_folder, read_folder, read_untrusted
from asap.experiments.logs.read import log_of_folder
from asap.experiments.trackers.source import is_tracked, read_tracked
from asap.hardware import find_chip
from asap.profiles import Profile
from asap.study.study import Study, study_of

Progress = Callable[[str], None]

_MOST_NAMES = 1000


def open_study(
    target: str,
    store: ExperimentStore,
    amend: Callable[[Experiment], Experiment] | None = None,
    *,
    overrides: Sequence[str] = (),
    progress: Progress | None = None,
) -> Study:
    """Look up an experiment ID, or take a configuration's or a profile's path as an experiment of its own.

    Args:
        target: an ID of the store, a training log, a configuration file or launch script, or the folder of one, a log
            directory, a run folder, an ``*.xplane.pb`` or a GPU trace, the last four also on an object store
            (``gs://…``), or a run of a tracker (``mlflow:RUN_ID``, ``tensorboard:DIR``).
        store: where experiments are kept.
        amend: fills in what the user states beside the record, such as a plan.
        overrides: ``key=value`` for a configuration.
        progress: called with what is being read.

    Raises:
        NotFoundError: neither an ID nor a path.
        ConfigError: the configuration cannot be read.
        PlanError: the plan does not fit the number of devices.
        ProfileError: the profile cannot be read.
        UsageError: overrides of what is no configuration.
    """
    amend = amend or (lambda experiment: experiment)
    if overrides or _is_configuration(target, store):
        return study_of(open_record(target, store, amend, overrides))
    experiment, profile, recording = _look_up(target, store, amend, progress)
    return study_of(amend(experiment), profile, recording)


def open_record(
    target: str,
    store: ExperimentStore,
    amend: Callable[[Experiment], Experiment],
    overrides: Sequence[str] = (),
) -> Experiment:
    """The record of an ID or a configuration alone; raises like :func:`open_study`."""
    if not _is_configuration(target, store):
        if overrides:
            raise UsageError("is no option, and only a file's settings can be changed", where=plain(overrides[0], 60))
        return amend(store.get(target))
    stated = amend(Experiment(id=experiment_id(target, store)))  # -1 in a configuration needs the hardware
    path = user_path(target)
    return amend((read_folder if path.is_dir() else read_untrusted)(path, overrides, stated))


def reopen_study(experiment: Experiment, store: ExperimentStore, progress: Progress | None = None) -> Study:
    """A study of a record as a session opened it; raises like :func:`open_study`."""
    target = experiment.id if store.has(experiment.id) else experiment.profile_path
    if target is None:
        return study_of(experiment)
    return open_study(target, store, lambda _: experiment, progress=progress)


def experiment_id(target: str, store: ExperimentStore, opened: Mapping[str, str] | None = None) -> str:
    """The ID that a target is opened under: its own, or one made of the name of its file or folder, and of as many
    folders above it as tell it from the IDs of other targets that are ``opened``."""
    if store.has(target):
        return target
    parts = Path(target).expanduser().resolve().parts[1:]
    names = ("-".join(parts[-depth:]) for depth in range(1, len(parts) + 1))
    kept = ("".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name) for name in names)
    found = (name[-128:].strip("-._") or "profile" for name in kept)
    place = opened_path(target, store)
    taken = [name for name, other in (opened or {}).items() if opened_path(other, store) != place]
    return next((name for name in found if name not in taken), f"profile-{len(taken)}")


def _is_configuration(target: str, store: ExperimentStore) -> bool:
    from asap.traces.recording import is_recording

    if store.has(target) or is_tracked(target) or is_remote(target):
        return False
    path = user_path(target)
    if not exists(path) or path.is_file():
        return exists(path) and not is_recording(path)
    if not path.is_dir() or any(map(is_recording, files := files_of_folder(path))):
        return False
    recorded = (file for kind in ("*.pb", "*trace.json*") for file in path.rglob(kind))
    return bool(files) or (next(recorded, None) is None and log_of_folder(path) is not None)


def opened_path(target: str, store: ExperimentStore) -> str | None:
    """The whole path of a target that is one: files in two folders may be opened under one ID."""
    if store.has(target) or is_tracked(target) or is_remote(target) or not exists(path := user_path(target)):
        return None
    return str(path.resolve())


class _Found(NamedTuple):
    """What a target means: the record, its profile, and what both the profile and a replay are read from."""

    experiment: Experiment
    profile: Profile | None = None
    recording: Path | None = None


def _look_up(
    target: str, store: ExperimentStore, amend: Callable[[Experiment], Experiment], progress: Progress | None
) -> _Found:
    if store.has(target):
        experiment = store.get(target)
        paths = store.resolve(experiment)
        if paths.profile is not None:
            return _recorded(experiment, paths.profile, amend, progress)
        return _Found(experiment, _stated(paths.facts) if paths.facts else None)
    if is_tracked(target):
        stated = amend(Experiment(id=experiment_id(target, store)))
        if progress is not None:
            progress(f"reading {target}")
        experiment = read_tracked(target, stated)
        path = experiment.profile_path
        return _recorded(experiment, Path(path), amend, progress) if path else _Found(experiment)
    if is_remote(target):
        experiment = Experiment(id=experiment_id(target, store), profile_path=target)
        return _recorded(experiment, local_copy(target, ".xplane.pb"), amend, progress)
    path = user_path(target)
    if exists(path):
        experiment = Experiment(id=experiment_id(target, store), profile_path=str(path))
        return _recorded(experiment, path, amend, progress)
    try:
        return _Found(store.get(target))
    except NotFoundError as error:
        near = _nearest(path)
        hint = f"did you mean {plain(str(Path(target).with_name(near)), 200)}? {error.hint}" if near else error.hint
        hint = "put a command into a file that ends in .sh, and give the file" if len(target.split()) > 2 else hint
        raise NotFoundError("no such experiment, and no such path", where=plain(target, 200), hint=hint) from None


def _nearest(path: Path) -> str | None:
    """The name in the same folder that is nearly that of a path."""
    beside = islice((one.name for one in path.parent.iterdir()), _MOST_NAMES) if path.parent.is_dir() else ()
    return next(iter(get_close_matches(path.name, list(beside), n=1, cutoff=0.75)), None)


def _recorded(
    experiment: Experiment, path: Path, amend: Callable[[Experiment], Experiment], progress: Progress | None
) -> _Found:
    from asap.traces.recording import read_recording

    chip = amend(experiment).hardware.chip
    named = find_chip(chip) if chip else None
    return _Found(experiment, read_recording(path, progress, named.chip if named else None), path)


def _stated(path: Path) -> Profile:
    try:
        return Profile.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise NotFoundError("the stated facts of this experiment are gone", where=str(path)) from error
    except (ValueError, ValidationError) as error:
        raise ConfigError(f"stated facts cannot be read: {plain(error, 200)}", where=str(path)) from error
