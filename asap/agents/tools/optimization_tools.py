"""Tools on ``asap optimize`` that spend nothing: the best configuration by the model, and sessions on record."""

from asap.agents.tools.results import Answer, answering, facts
from asap.agents.tools.study_cache import StudyCache


class OptimizationTools:
    """Tools that look for the fastest configuration, or show how a session looked for it."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def optimize(self, experiment: str) -> Answer:
        """Find the fastest configuration of a run by the model alone, with what to paste. Nothing is run or compiled.

        Args:
            experiment: ID of the experiment.
        """
        from asap.optimize.by_model import optimize_by_model

        return facts(optimize_by_model(self._studies.study(experiment)), "schema_")

    @answering
    def show_optimization(self, session: str) -> Answer:
        """Show a session of ``asap optimize``: every try with its outcome and feedback, the best so far, the cost.

        Args:
            session: its name.
        """
        from asap.optimize.by_evaluation import open_session, report_of

        return facts(report_of(*open_session(session)), "schema_")
