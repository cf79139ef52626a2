"""Tools on what could run instead: candidates, predictions, validity, comparison. Every number is the engine's."""

from typing import Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, facts
from asap.agents.tools.study_cache import StudyCache
from asap.core.errors import PlanError
from asap.plans import Plan
from asap.plans.validity import unchecked, violations
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.propose import RankedCandidates
from asap.proposals.ranking import choose
from asap.proposals.strategy import title
from asap.study.study import Study

Limit = Annotated[int, Field(ge=1, le=50)]
Several = Annotated[list[str], Field(min_length=2, max_length=6)]


class PlanTools:
    """Tools over the engine's predictions."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def list_candidates(self, experiment: str, limit: Limit = 8) -> Answer:
        """List the best valid plans for a run, each with its prediction, best first by risk-adjusted gain.

        `engine_choice` holds those that the engine would propose, at most three, each of another strategy. Only plans
        that have a rank can be proposed.

        Args:
            experiment: ID of the experiment.
            limit: how many candidates, 1 to 50.
        """
        ranked = self._studies.candidates(experiment)
        plans = [candidate.plan for candidate in choose(ranked.candidates, ranked.study.plan)]
        return {
            "considered": ranked.considered,
            "incumbent": prediction_facts(ranked.incumbent) if ranked.incumbent else None,
            "engine_choice": list(map(str, plans)),
            "candidates": [
                _placed(ranked, candidate.prediction)
                for number, candidate in enumerate(ranked.candidates, 1)
                if number <= limit or candidate.plan in plans
            ],
        }

    @answering
    def predict_plan(self, experiment: str, plan: str) -> Answer:
        """Predict one plan: step time against the plan that runs now with its 90 % interval, communication, HBM.

        Args:
            experiment: ID of the experiment.
            plan: axes with their degrees, such as `data=32 seq=2 model=2`; what it leaves out stays as it is now.
        """
        study = self._studies.study(experiment)
        return _placed(self._studies.candidates(experiment), expect(study, [_valid(study, plan)])[0])

    @answering
    def check_plan(self, experiment: str, plan: str) -> Answer:
        """Check whether a plan can run: devices, batch, sequence, heads, experts, layers.

        Args:
            experiment: ID of the experiment.
            plan: axes with their degrees, such as `data=32 seq=2 model=2`.
        """
        study = self._studies.study(experiment)
        parsed = Plan.parse(plan).completed_by(study.plan)
        broken = [violation.sentence for violation in violations(parsed, study.constraints)]
        return {
            "plan": str(parsed),
            "valid": not broken,
            "violations": broken,
            "not_checked": unchecked(study.constraints),
        }

    @answering
    def compare_plans(self, experiment: str, plans: Several) -> Answer:
        """Predict several plans side by side, fastest first.

        Args:
            experiment: ID of the experiment.
            plans: two to six plans, such as `data=32 seq=2 model=2`.
        """
        study, ranked = self._studies.study(experiment), self._studies.candidates(experiment)
        predictions = expect(study, [_valid(study, plan) for plan in plans])
        return {"plans": [_placed(ranked, prediction) for prediction in sorted(predictions, key=_step_time)]}


def prediction_facts(prediction: Prediction) -> Answer:
    """A prediction with its plan in the text form."""
    return {"plan": str(prediction.plan)} | facts(prediction, "plan", "parts")


def _placed(ranked: RankedCandidates, prediction: Prediction) -> Answer:
    found = ((n, one.strategy) for n, one in enumerate(ranked.candidates, 1) if one.plan == prediction.plan)
    rank, strategy = next(found, (None, ""))
    incumbent = ranked.study.plan
    return {
        "rank": rank,
        "strategy": title(prediction.plan, incumbent, strategy) if incumbent else None,
        **prediction_facts(prediction),
    }


def _valid(study: Study, text: str) -> Plan:
    plan = Plan.parse(text).completed_by(study.plan)
    broken = violations(plan, study.constraints)
    if broken:
        raise PlanError("; ".join(v.sentence for v in broken), where=str(plan), hint="choose another with check_plan")
    return plan


def _step_time(prediction: Prediction) -> float:
    quantity = prediction.relative_step_time or prediction.step_time
    return quantity.value if quantity else float("inf")
