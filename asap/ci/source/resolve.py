"""A configuration at one commit as a study: read, placed on its hardware, and linked to an experiment."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile

from asap.ci.source.policy import Policy
from asap.ci.source.revision import Revision, resolve_reference
from asap.core.errors import AsapError, ConfigError, UnreadError
from asap.core.limits import FILE_LIMITS, LimitReachedError, within
from asap.core.text import plain
from asap.experiments import (
    Experiment,
    ExperimentStore,
    HardwareReference,
    read_configuration,
    read_launch,
    refer_to_hardware,
)
from asap.experiments.configuration import read_untrusted
from asap.experiments.files.documents import LARGEST_BYTES
from asap.experiments.shell import SCRIPTS
from asap.plans import Plan
from asap.stacks.registry import OF_YAML, code_of_all
from asap.study.open_study import open_study
from asap.study.study import Study, study_of

_RUN_NAME = "run_name"


class LinkedExperiments:
    """The experiments that configurations can be linked to, each opened once.

    Args:
        store: where they are kept.
        within: folder that profiles and facts must lie in; ``None`` if the store is the user's own.
    """

    def __init__(self, store: ExperimentStore, within: Path | None = None):
        self._store = store
        self._within = within.resolve() if within else None
        self._opened: dict[str, tuple[Study | None, tuple[str, ...]]] = {}

    def find(self, named: str | None, experiment: Experiment, path: str) -> tuple[Study | None, tuple[str, ...]]:
        """The experiment of a configuration, named by the policy, its ``run_name`` or its file name, and notes."""
        run_name = experiment.hyperparameters.get(_RUN_NAME)
        for name in (named, run_name, PurePosixPath(path).stem):
            if isinstance(name, str) and self._store.has(name):
                return self._open(name)
        if named is not None:
            return None, (f"The policy names experiment {plain(named, 80)}, which does not exist.",)
        return None, ()

    def _open(self, name: str) -> tuple[Study | None, tuple[str, ...]]:
        if name not in self._opened:
            try:
                self._check(name)
                self._opened[name] = open_study(name, self._store), ()
            except AsapError as error:
                reason = plain(error.message, 200)
                self._opened[name] = None, (f"Experiment {name} cannot be used: {reason}.",)
        return self._opened[name]

    def _check(self, name: str) -> None:
        if self._within is None or not (self._store.folder / f"{name}.json").is_file():
            return
        paths = self._store.resolve(self._store.get(name))
        for path in (paths.profile, paths.facts):
            if path is not None and not path.resolve().is_relative_to(self._within):
                raise AsapError("its profile lies outside the repository")


_PLACE = re.compile(r"(.*?):(\d{1,7})(?:: (.*))?", re.DOTALL)
_ID = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Problem:
    """Why a configuration cannot be used, and the line of its file that says so."""

    message: str
    line: int | None
    unread: bool = False
    """Only a run would settle it: nothing is said to be wrong with it."""


@dataclass(frozen=True)
class ResolvedConfiguration:
    """A configuration at one commit."""

    path: str
    text: str | None
    study: Study | None = None
    problem: Problem | None = None
    linked: Study | None = None
    """The experiment behind it."""
    included: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    without_mesh: Study | None = None
    """The run with its mesh left open, if only the mesh is wrong."""
    sources: "Sources | None" = None

    def becomes(self, plan: Plan, text: str) -> bool:
        """Whether the file, with another text, is read as a plan; what the plan leaves open may be anything."""
        if self.sources is None or not self.sources.target.is_file():
            return False
        place = self.sources.target
        with NamedTemporaryFile("w", encoding="utf-8", dir=place.parent, suffix=f"-{place.name}") as edited:
            edited.write(text)
            edited.flush()
            try:
                read = study_of(read_untrusted(Path(edited.name), (), self.sources.empty)).plan
            except AsapError:
                return False
        unsaid = {field: None for field in ("microbatches", "remat") if getattr(plan, field) is None}
        return read is not None and read.model_copy(update=unsaid) == plan


def resolve(revision: Revision, path: str, policy: Policy, experiments: LinkedExperiments) -> ResolvedConfiguration:
    """Read a configuration at a commit, within limits; what is wrong with it is part of the result."""
    try:
        return within(FILE_LIMITS, lambda: _resolve(revision, path, policy, experiments), path)
    except LimitReachedError as error:
        return ResolvedConfiguration(path, revision.text(path), problem=Problem(plain(error.message, 500), 1))


def _resolve(revision: Revision, path: str, policy: Policy, experiments: LinkedExperiments) -> ResolvedConfiguration:
    text = revision.text(path)
    sources: Sources | None = None
    try:
        sources = _sources(revision, path, text, policy)
        experiment = _read(sources)
        linked, link_notes = experiments.find(policy.experiment_of(path), experiment, path)
        if linked is not None and not (experiment.hardware.name or experiment.hardware.chip):
            empty = sources.empty.model_copy(update={"hardware": linked.experiment.hardware})
            sources = replace(sources, empty=empty)
            experiment = _read(sources)
            link_notes += (f"Hardware taken from experiment {linked.experiment.id}.",)
        study = study_of(experiment)
    except AsapError as error:
        problem = _problem(revision.relativize_paths(error), path, _line(text, path))
        open_mesh = _drop_mesh(revision, sources)
        return ResolvedConfiguration(path, text, problem=problem, without_mesh=open_mesh, sources=sources)
    linked = None if experiment.measured else linked
    return ResolvedConfiguration(
        path, text, study, None, linked, sources.included, (*link_notes, *study.warnings), sources=sources
    )


def _read(sources: "Sources") -> Experiment:
    return read_configuration(sources.target, (), sources.empty)


@dataclass(frozen=True)
class Sources:
    """All that a configuration is read from."""

    target: Path
    included: tuple[str, ...]
    empty: Experiment


def _sources(revision: Revision, path: str, text: str | None, policy: Policy) -> Sources:
    """The file that a configuration starts from, and all that it includes; of a script of MaxText also its file."""
    if path.endswith(SCRIPTS) and text is None:
        raise ConfigError(f"is not a text file of at most {LARGEST_BYTES} bytes", where=path)
    launch = read_launch(text) if text and path.endswith(SCRIPTS) else None
    target, included = revision.check_out_with_bases(path)
    if launch is not None and launch.config is not None:
        folders: Sequence[PurePosixPath] = (PurePosixPath(), PurePosixPath(path).parent)
        candidates = [resolve_reference(folder, launch.config) for folder in folders]
        if found := next((one for one in candidates if one in revision.tree), None):
            included += revision.check_out_with_bases(found, launch.overrides)[1]
    named = policy.hardware_of(path)
    hardware = refer_to_hardware(named, slices=launch and launch.slices)[0] if named else HardwareReference()
    return Sources(target, included, Experiment(id=_id(path), hardware=hardware))


def _drop_mesh(revision: Revision, sources: Sources | None) -> Study | None:
    if sources is None:
        return None
    return _open_mesh(sources, [revision.text(path) or "" for path in reversed(sources.included)])


def _problem(error: AsapError, path: str, line: int | None) -> Problem:
    where = error.where or ""
    place = _PLACE.fullmatch(where)
    if place is not None and place[1] in (path, PurePosixPath(path).name):
        line, where = int(place[2]), place[3] or ""
    prefix = "" if where in ("", path) else f"{where}: "
    hint = f" ({error.hint})" if error.hint else ""
    return Problem(plain(f"{prefix}{error.message}{hint}", 500), line, isinstance(error, UnreadError))


def _line(text: str | None, path: str) -> int | None:
    return launch.line if text and path.endswith(SCRIPTS) and (launch := read_launch(text)) else None


def _id(path: str) -> str:
    stem = _ID.sub("-", PurePosixPath(path).stem.encode(errors="ignore").decode()).strip("-._")
    return stem[:100] or "configuration"


def _open_mesh(sources: Sources, texts: Sequence[str]) -> Study | None:
    """The run that a configuration describes with its mesh left open; ``None`` if something else is wrong too.

    Args:
        sources: of the configuration.
        texts: of the included files and of the file itself, later ones winning; read for the axes they set.
    """
    found = (left_open(texts) for left_open in code_of_all("left_open"))
    said, free = next((each for each in found if each[0]), ({}, {}))
    if not said:
        return None
    try:
        experiment = read_configuration(sources.target, [f"{k}={free[k]}" for k in free], sources.empty)
        settings = {key: value for key, value in experiment.hyperparameters.items() if key not in free} | said
        settings |= {} if sources.target.name.endswith(SCRIPTS) else {OF_YAML: True}
        return study_of(experiment.model_copy(update={"plan": None, "hyperparameters": settings}))
    except AsapError:
        return None
