"""The studies that are open in this process, each with all its candidates once they were asked for."""

from asap.core.errors import AsapError, InsufficientEvidenceError, PlanError
from asap.core.text import plain
from asap.diagnosis.study import Study, open_study
from asap.experiments import ExperimentStore
from asap.plans import Mesh, Plan
from asap.proposals.propose import Field, survey

LONGEST_PLAN = 300
SETTINGS = ("microbatches", "pipeline_repeats", "remat", "offload")


class Desk:
    """Opens an experiment once.

    Args:
        store: where experiments are looked up. Paths are not: what an agent asks for is an ID.
    """

    def __init__(self, store: ExperimentStore | None = None):
        self.store = store or ExperimentStore()
        self._studies: dict[str, Study] = {}
        self._surveys: dict[str, Field] = {}

    def put(self, study: Study) -> None:
        """Lay a study on the desk under the ID of its experiment."""
        self._studies[study.experiment.id] = study
        self._surveys.pop(study.experiment.id, None)

    def lay(self, survey: Field) -> None:
        """Replace all candidates of an experiment by others, such as those that were compiled."""
        self._surveys[survey.study.experiment.id] = survey

    def study(self, experiment: str) -> Study:
        """The study of an experiment; raises what :func:`asap.diagnosis.study.open_study` raises."""
        if experiment not in self._studies:
            self.store.get(experiment)
            self.put(open_study(experiment, self.store))
        return self._studies[experiment]

    def survey(self, experiment: str) -> Field:
        """All candidates of an experiment in their order; without precedents if the history cannot be searched.

        Raises:
            InsufficientEvidenceError: too little is known to predict any plan.
        """
        if experiment not in self._surveys:
            study = self.study(experiment)
            try:
                self._surveys[experiment] = survey(study)
            except InsufficientEvidenceError:
                raise
            except AsapError:
                self._surveys[experiment] = survey(study, priors={})
        return self._surveys[experiment]


def read_plan(study: Study, text: str) -> Plan:
    """A plan in the text form; the settings and the DCN mesh that it leaves out are those of the plan that runs.

    Raises:
        PlanError: it is not a plan.
    """
    if len(text) > LONGEST_PLAN:
        raise PlanError(f"is longer than any plan ({LONGEST_PLAN} characters)", where=plain(text, 40))
    plan, incumbent = Plan.parse(text), study.plan
    if incumbent is None:
        return plan
    left_out = [name for name in SETTINGS if name not in plan.model_fields_set]
    left_out += ["dcn"] if plan.dcn == Mesh() else []
    return plan.model_copy(update={name: getattr(incumbent, name) for name in left_out})
