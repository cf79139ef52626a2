"""The experiment behind a configuration, whose measured step anchors the prediction."""

from pathlib import Path, PurePosixPath

from asap.core.errors import AsapError
from asap.core.text import plain
from asap.experiments import Experiment, ExperimentStore
from asap.study.open_study import open_study
from asap.study.study import Study

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
