"""Where experiments are kept: one readable JSON file each, and the bundled ones that are always there."""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from asap.core.errors import AsapError, ConfigError, NotFoundError, UsageError
from asap.core.files import home, write_atomically
from asap.core.locking import locked
from asap.core.remote import is_remote, local_copy
from asap.core.secrets import strip_secrets
from asap.core.text import plain
from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import read_text, validation_reason

BUNDLED = Path(__file__).parent / "bundled"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_FACTS = ".facts"
_LARGEST_BYTES = 10_000_000
_NEAREST = 3


@dataclass(frozen=True)
class Listing:
    """All experiments, and one line for each file that could not be read."""

    experiments: tuple[Experiment, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Paths:
    """Where the measured and the stated facts of an experiment lie."""

    profile: Path | None
    facts: Path | None


class ExperimentStore:
    """The experiments of a folder, by default ``home()/experiments``, and the bundled ones."""

    def __init__(self, folder: Path | None = None):
        self.folder = folder or home() / "experiments"

    def add(self, experiment: Experiment, replace: bool = False) -> Experiment:
        """Keep a record; returns it as it was kept, with its date and without secrets.

        Raises:
            UsageError: the ID is taken (unless ``replace``), bundled or not usable as a file name.
            AsapError: the folder cannot be written.
        """
        path = self._own_path(experiment.id)
        dated = experiment.model_copy(update={"created": experiment.created or datetime.now(UTC)})
        kept = Experiment.model_validate(strip_secrets(dated.model_dump(mode="json", by_alias=True)))
        with locked(self.folder, "the experiments"):
            if path.exists() and not replace:
                hint = "use another or replace it"
                raise UsageError("an experiment with this ID exists", where=experiment.id, hint=hint)
            write_atomically(path, kept.model_dump_json(indent=2, by_alias=True) + "\n")
        return kept

    def get(self, experiment_id: str) -> Experiment:
        """The record behind an ID.

        Raises:
            NotFoundError: there is none; the nearest IDs are in the hint.
            ConfigError: its file cannot be read.
        """
        path = self._path(experiment_id)
        if path is None:
            raise self._unknown(experiment_id)
        return _read(path)

    def has(self, experiment_id: str) -> bool:
        """Whether there is a record behind an ID, readable or not."""
        return self._path(experiment_id) is not None

    def ids(self) -> tuple[str, ...]:
        """All IDs, sorted."""
        return tuple(sorted(path.stem for path in self._files()))

    def list(self) -> Listing:
        """All records by ID; a file that cannot be read becomes a warning."""
        experiments, warnings = [], []
        for path in sorted(self._files(), key=lambda path: path.stem):
            try:
                experiments.append(_read(path))
            except AsapError as error:
                warnings.append(plain(error))
        return Listing(tuple(experiments), tuple(warnings))

    def remove(self, experiment_id: str) -> None:
        """Forget a record.

        Raises:
            NotFoundError: there is none.
            UsageError: it is bundled.
        """
        if self._path(experiment_id) is None:
            raise self._unknown(experiment_id)
        path = self._own_path(experiment_id)
        with locked(self.folder, "the experiments"):
            path.unlink(missing_ok=True)

    def resolve(self, experiment: Experiment) -> Paths:
        """Absolute paths of the profile and the stated facts; relative ones start at the record's file.

        A profile on an object store is copied first; raises like :func:`asap.core.remote.local_copy`.
        """
        folder = BUNDLED if _is_bundled(experiment.id) else self.folder
        profile, facts = experiment.profile_path, experiment.facts_path
        place = (
            local_copy(profile, ".xplane.pb")
            if profile and is_remote(profile)
            else folder / profile
            if profile
            else None
        )
        return Paths(place, folder / facts if facts else None)

    def profile_of(self, target: str) -> str:
        """Where the profile of an ID lies; what is no ID is a path itself.

        Raises:
            NotFoundError: the experiment has none.
        """
        if not self.has(target):
            return target
        if (found := self.resolve(self.get(target)).profile) is None:
            raise NotFoundError("has no profile", where=target, hint="give the path of one")
        return str(found)

    def _files(self) -> Iterator[Path]:
        for folder in (BUNDLED, self.folder):
            yield from (path for path in folder.glob("*.json") if _is_id(path.stem))

    def _path(self, experiment_id: str) -> Path | None:
        if not _is_id(experiment_id):
            return None
        folders = (BUNDLED, self.folder)
        return next((path for folder in folders if (path := folder / f"{experiment_id}.json").is_file()), None)

    def check_id(self, experiment_id: str) -> None:
        """Raise UsageError unless a record of the user's own may have this ID."""
        if not _is_id(experiment_id):
            message = "an ID has letters, digits, '.', '_' and '-', and does not end in '.facts'"
            raise UsageError(message, where=plain(experiment_id, 80))
        if _is_bundled(experiment_id):
            raise UsageError("is bundled with ASAP and stays as it is", where=experiment_id, hint="use another ID")

    def _own_path(self, experiment_id: str) -> Path:
        self.check_id(experiment_id)
        return self.folder / f"{experiment_id}.json"

    def _unknown(self, experiment_id: str) -> NotFoundError:
        near = difflib.get_close_matches(experiment_id, self.ids(), n=_NEAREST, cutoff=0.4)
        hint = f"nearest: {', '.join(near)}" if near else "`asap experiments list` shows what there is"
        return NotFoundError("no such experiment", where=plain(experiment_id, 80) or "(empty)", hint=hint)


def _is_id(name: str) -> bool:
    return _ID.fullmatch(name) is not None and not name.endswith(_FACTS)


def _is_bundled(experiment_id: str) -> bool:
    return _is_id(experiment_id) and (BUNDLED / f"{experiment_id}.json").is_file()


def _read(path: Path) -> Experiment:
    try:
        experiment = Experiment.model_validate_json(read_text(path, _LARGEST_BYTES))
    except ValidationError as error:
        raise ConfigError(validation_reason(error), where=str(path)) from error
    if experiment.id != path.stem:
        raise ConfigError(f"holds the record of {experiment.id!r}", where=str(path), hint="rename the file or the ID")
    return experiment
