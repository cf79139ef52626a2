"""The studies that are open in this process, each with its ranked candidates once they are requested."""

from typing import TYPE_CHECKING

from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.experiments import ExperimentStore
from asap.proposals.selection.ranked_candidates import RankedCandidates, rank_candidates
from asap.study.open_study import open_study
from asap.study.study import Study

if TYPE_CHECKING:
    from asap.traces.graph.graph import Graph


class StudyCache:
    """Opens an experiment once.

    Args:
        store: where experiments are looked up. Paths are not: what an agent asks for is an ID.
    """

    def __init__(self, store: ExperimentStore | None = None):
        self.store = store or ExperimentStore()
        self._studies: dict[str, Study] = {}
        self._ranked: dict[str, RankedCandidates] = {}

    def add(self, study: Study) -> None:
        """Keep a study under the ID of its experiment."""
        self._studies[study.experiment.id] = study
        self._ranked.pop(study.experiment.id, None)

    def replace_candidates(self, ranked: RankedCandidates) -> None:
        """Replace all candidates of an experiment by others, such as those that were compiled."""
        self._ranked[ranked.study.experiment.id] = ranked

    def study(self, experiment: str) -> Study:
        """The study of an experiment; raises what :func:`asap.study.open_study.open_study` raises."""
        if experiment not in self._studies:
            self.store.get(experiment)
            self.add(open_study(experiment, self.store))
        return self._studies[experiment]

    def graph(self, experiment: str) -> "Graph":
        """The execution graph of what was recorded of an experiment.

        Raises:
            InsufficientEvidenceError: nothing was recorded, or no device did anything in it.
        """
        from asap.traces.recording import read_graph

        recording = self.study(experiment).recording
        if recording is None:
            raise InsufficientEvidenceError("nothing was recorded of this run", where=experiment)
        return read_graph(recording)

    def candidates(self, experiment: str) -> RankedCandidates:
        """All candidates of an experiment in their order; without precedents if the history cannot be searched.

        Raises:
            InsufficientEvidenceError: too little is known to predict any plan.
        """
        if experiment not in self._ranked:
            study = self.study(experiment)
            try:
                self._ranked[experiment] = rank_candidates(study)
            except InsufficientEvidenceError:
                raise
            except AsapError:
                self._ranked[experiment] = rank_candidates(study, priors={})
        return self._ranked[experiment]
