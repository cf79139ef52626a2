"""The runs that are open in this process, each once."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from asap.answers.inquiry import Inquiry
from asap.core.errors import InsufficientEvidenceError
from asap.evidence.fact import Origin, StatedFact
from asap.experiments import ExperimentStore
from asap.experiments.create import NOTHING_STATED, Statement, amend
from asap.proposals.ranked_candidates import RankedCandidates
from asap.study.open_study import experiment_id, open_study
from asap.study.study import Study

if TYPE_CHECKING:
    from asap.traces.graph.graph import Graph


class Inquiries:
    """Opens a run once.

    Args:
        store: where experiments are looked up. Paths are opened by :meth:`open` alone.
        origin: where what is stated of the runs comes from.
    """

    def __init__(self, store: ExperimentStore | None = None, origin: Origin = "typed"):
        self.store = store or ExperimentStore()
        self._origin: Origin = origin
        self._open: dict[str, Inquiry] = {}
        self.opened: dict[str, tuple[str, Statement]] = {}

    def of(self, experiment: str) -> Inquiry:
        """The run of an ID; raises what :func:`asap.study.open_study.open_study` raises."""
        if experiment not in self._open:
            self.store.get(experiment)
            self.add(open_study(experiment, self.store))
        return self._open[experiment]

    def open(self, target: str, said: Statement = NOTHING_STATED) -> Inquiry:
        """The run of an ID, a file, a folder or a tracker's run, with what is said beside it, then known by its ID;
        raises like :meth:`of`."""
        name = experiment_id(target, self.store, {name: other for name, (other, _) in self.opened.items()})
        self.add(open_study(target, self.store, lambda record: amend(record, said).model_copy(update={"id": name})))
        self.opened[name] = target, said
        return self._open[name]

    def add(self, study: Study) -> None:
        """Keep a study under the ID of its experiment."""
        self.keep(Inquiry(study, self.store, origin=self._origin))

    def keep(self, inquiry: Inquiry) -> None:
        """Keep a run that is open."""
        self._open[inquiry.id] = inquiry

    def recorded(self, experiment: str, facts: Iterable[StatedFact]) -> Study:
        """The study of an experiment with facts on its record; raises what :meth:`Inquiry.record` raises."""
        self.of(experiment).record(facts)
        return self.study(experiment)

    def study(self, experiment: str) -> Study:
        """The study of an experiment."""
        return self.of(experiment).study

    def candidates(self, experiment: str) -> RankedCandidates:
        """All candidates of an experiment in their order.

        Raises:
            InsufficientEvidenceError: too little is known to predict any plan.
        """
        return self.of(experiment).revised.ranked

    def replace_candidates(self, ranked: RankedCandidates) -> None:
        """Replace all candidates of an experiment by others, such as those that were compiled."""
        self.of(ranked.study.experiment.id).replace_ranking(ranked)

    def graph(self, experiment: str) -> "Graph":
        """The execution graph of what was recorded of an experiment.

        Raises:
            InsufficientEvidenceError: nothing was recorded, or no device did anything in it.
        """
        return graph_of(self.study(experiment))


def graph_of(study: Study) -> "Graph":
    """The execution graph of what was recorded of a run.

    Raises:
        InsufficientEvidenceError: nothing was recorded, or no device did anything in it.
    """
    from asap.traces.recording import read_graph

    if study.recording is None:
        hint = "`capture` says what to record"
        raise InsufficientEvidenceError("nothing was recorded of this run", where=study.experiment.id, hint=hint)
    return read_graph(study.recording)
