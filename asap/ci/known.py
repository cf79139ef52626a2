"""Known experiments: the run behind a configuration, whose measured step anchors what is predicted."""

from pathlib import Path, PurePosixPath

from asap.core.errors import AsapError
from asap.core.text import plain
from asap.diagnosis.study import Study, open_study
from asap.experiments import Experiment, ExperimentStore

_STATED = "run_name"


class Known:
    """The experiments that configurations may be linked to, each opened once.

    Args:
        store: where they are kept.
        inside: paths of profiles and facts must lie in this folder; ``None`` where the store is the user's own.
    """

    def __init__(self, store: ExperimentStore, inside: Path | None = None):
        self._store = store
        self._inside = inside.resolve() if inside else None
        self._opened: dict[str, tuple[Study | None, tuple[str, ...]]] = {}

    def find(self, named: str | None, experiment: Experiment, path: str) -> tuple[Study | None, tuple[str, ...]]:
        """The study of the run behind a configuration: by the policy's word, its ``run_name``, or its file's name."""
        run_name = experiment.hyperparameters.get(_STATED)
        for name in (named, run_name, PurePosixPath(path).stem):
            if isinstance(name, str) and self._store.has(name):
                return self._open(name)
        if named is not None:
            return None, (f"There is no experiment {plain(named, 80)}, which the policy names.",)
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
        if self._inside is None or not (self._store.folder / f"{name}.json").is_file():
            return
        paths = self._store.resolve(self._store.get(name))
        for path in (paths.profile, paths.facts):
            if path is not None and not path.resolve().is_relative_to(self._inside):
                raise AsapError("its profile lies outside of the repository")
