"""A configuration at one commit as a study: read, laid on its hardware, and linked to a known experiment."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from asap.ci.known import Known
from asap.ci.launch import SCRIPTS, Launch, read_launch
from asap.ci.policy import Policy
from asap.ci.repair import without_plan
from asap.ci.revision import Revision, normal
from asap.core.errors import AsapError, ConfigError
from asap.core.text import plain
from asap.diagnosis.study import Study, study_of
from asap.experiments import Experiment, HardwareReference, read_configuration, refer_to_hardware
from asap.experiments.documents import LARGEST_BYTES

_PLACE = re.compile(r"(.*?):(\d{1,7})(?:: (.*))?", re.DOTALL)
_ID = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class Problem:
    """Why a configuration cannot be used, and the line of its file that says so."""

    message: str
    line: int | None


@dataclass(frozen=True)
class Resolved:
    """A configuration at one commit."""

    path: str
    text: str | None
    study: Study | None = None
    problem: Problem | None = None
    known: Study | None = None
    closure: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    repaired: Study | None = None
    """The run with its mesh left open, where nothing but the mesh is wrong."""


def resolve(revision: Revision, path: str, policy: Policy, known: Known) -> Resolved:
    """Read a configuration as its commit holds it; what is wrong with it is part of the result."""
    text = revision.text(path)
    sources: _Sources | None = None
    try:
        sources = _sources(revision, path, text, policy)
        experiment = read_configuration(sources.target, sources.overrides, sources.empty)
        linked, linking = known.find(policy.experiment_of(path), experiment, path)
        if linked is not None and not (experiment.hardware.name or experiment.hardware.chip):
            empty = sources.empty.model_copy(update={"hardware": linked.experiment.hardware})
            experiment = read_configuration(sources.target, sources.overrides, empty)
            linking += (f"The hardware is that of experiment {linked.experiment.id}.",)
        study = study_of(experiment)
    except AsapError as error:
        problem = _problem(revision.clean(error), path, _line(text, path))
        return Resolved(path, text, problem=problem, repaired=_repaired(revision, sources))
    return Resolved(path, text, study, None, linked, sources.closure, (*sources.notes, *linking, *study.warnings))


@dataclass(frozen=True)
class _Sources:
    """All that a configuration is read from."""

    target: Path | None
    closure: tuple[str, ...]
    overrides: tuple[str, ...]
    empty: Experiment
    notes: tuple[str, ...]


def _sources(revision: Revision, path: str, text: str | None, policy: Policy) -> _Sources:
    launch = _launch(path, text)
    target, closure, notes = _file(revision, path, launch)
    hardware, noted = _hardware(policy.hardware_of(path) or (launch.hardware if launch else None), launch)
    empty = Experiment(id=_id(path), hardware=hardware)
    return _Sources(target, closure, launch.overrides if launch else (), empty, (*notes, *noted))


def _repaired(revision: Revision, sources: _Sources | None) -> Study | None:
    if sources is None:
        return None
    texts = [revision.text(path) or "" for path in reversed(sources.closure) if not path.endswith(SCRIPTS)]
    return without_plan(sources.target, sources.overrides, sources.empty, texts)


def _launch(path: str, text: str | None) -> Launch | None:
    if not path.endswith(SCRIPTS):
        return None
    launch = read_launch(text) if text is not None else None
    if launch is None:
        raise ConfigError(f"has no MaxText command, or is no text of up to {LARGEST_BYTES} bytes", where=path)
    return launch


def _file(revision: Revision, path: str, launch: Launch | None) -> tuple[Path | None, tuple[str, ...], tuple[str, ...]]:
    """The file that a configuration starts from, all that it includes, and notes."""
    if launch is None:
        target, closure = revision.lay_with_bases(path)
        return target, closure, ()
    unknown = tuple(f"{key} is set by a variable whose value the script does not say." for key in launch.unknown)
    if launch.config is None:
        return None, (path,), unknown
    folders: Sequence[PurePosixPath] = (PurePosixPath(), PurePosixPath(path).parent)
    candidates = [normal(folder, launch.config) for folder in folders]
    found = next((one for one in candidates if one in revision.tree), None)
    if found is not None:
        target, closure = revision.lay_with_bases(found)
        return target, (path, *closure), unknown
    if PurePosixPath(launch.config).name == "base.yml":
        return None, (path,), unknown
    return None, (path,), (*unknown, f"{plain(launch.config, 80)} is not in this commit: only overrides are read.")


def _hardware(name: str | None, launch: Launch | None) -> tuple[HardwareReference, tuple[str, ...]]:
    return refer_to_hardware(name, slices=launch.slices if launch else None) if name else (HardwareReference(), ())


def _problem(error: AsapError, path: str, line: int | None) -> Problem:
    where = error.where or ""
    place = _PLACE.fullmatch(where)
    if place is not None and place[1] in (path, PurePosixPath(path).name):
        line, where = int(place[2]), place[3] or ""
    prefix = "" if where in ("", path) else f"{where}: "
    hint = f" ({error.hint})" if error.hint else ""
    return Problem(plain(f"{prefix}{error.message}{hint}", 500), line)


def _line(text: str | None, path: str) -> int | None:
    launch = read_launch(text) if text and path.endswith(SCRIPTS) else None
    return launch.line if launch else None


def _id(path: str) -> str:
    stem = _ID.sub("-", PurePosixPath(path).stem.encode(errors="ignore").decode()).strip("-._")
    return stem[:100] or "configuration"
