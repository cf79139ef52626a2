"""Tools on what could run instead: candidates, predictions, validity, comparison. Every number is the engine's."""

from typing import Annotated

from pydantic import Field

from asap.agents.answers import Answer, answering, facts
from asap.agents.desk import Desk, read_plan
from asap.core.errors import PlanError
from asap.diagnosis.study import Study
from asap.plans import Plan
from asap.plans.validity import unchecked, violations
from asap.prediction.expectation import expect
from asap.prediction.prediction import Prediction
from asap.proposals.propose import Field as Survey
from asap.proposals.ranking import choose
from asap.proposals.strategy import title

Limit = Annotated[int, Field(ge=1, le=50)]
Several = Annotated[list[str], Field(min_length=2, max_length=6)]


class PlanTools:
    """Tools over the engine's predictions."""

    def __init__(self, desk: Desk):
        self._desk = desk

    @answering
    def list_candidates(self, experiment: str, limit: Limit = 8) -> Answer:
        """List the best valid plans for a run, each with its prediction, best first after doubt is taken off.

        `engine_choice` holds the three that the engine would propose, each of another strategy. Only plans that have a
        rank can be proposed.

        Args:
            experiment: ID of the experiment.
            limit: how many candidates, 1 to 50.
        """
        survey = self._desk.survey(experiment)
        chosen = choose(survey.candidates, survey.study.plan)
        return {
            "considered": len(survey.candidates),
            "incumbent": prediction_facts(survey.incumbent) if survey.incumbent else None,
            "engine_choice": [str(candidate.plan) for candidate in chosen],
            "candidates": [
                _placed(survey, candidate.prediction)
                for number, candidate in enumerate(survey.candidates, 1)
                if number <= limit or candidate in chosen
            ],
        }

    @answering
    def predict_plan(self, experiment: str, plan: str) -> Answer:
        """Predict one plan: step time against the plan that runs now with its 90 % interval, communication, HBM.

        Args:
            experiment: ID of the experiment.
            plan: axes with their degrees, such as `data=32 seq=2 model=2`; what it leaves out stays as it is now.
        """
        study = self._desk.study(experiment)
        return _placed(self._desk.survey(experiment), expect(study, [_valid(study, plan)])[0])

    @answering
    def check_plan(self, experiment: str, plan: str) -> Answer:
        """Check whether a plan can run: devices, batch, sequence, heads, experts, layers.

        Args:
            experiment: ID of the experiment.
            plan: axes with their degrees, such as `data=32 seq=2 model=2`.
        """
        study = self._desk.study(experiment)
        parsed = read_plan(study, plan)
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
        study, survey = self._desk.study(experiment), self._desk.survey(experiment)
        predictions = expect(study, [_valid(study, plan) for plan in plans])
        return {"plans": [_placed(survey, prediction) for prediction in sorted(predictions, key=_step_time)]}


def prediction_facts(prediction: Prediction) -> Answer:
    """A prediction with its plan in the text form."""
    return {"plan": str(prediction.plan)} | facts(prediction, "plan", "parts")


def _placed(survey: Survey, prediction: Prediction) -> Answer:
    ranks = (n for n, candidate in enumerate(survey.candidates, 1) if candidate.plan == prediction.plan)
    incumbent = survey.study.plan
    return {
        "rank": next(ranks, None),
        "strategy": title(prediction.plan, incumbent) if incumbent else None,
        **prediction_facts(prediction),
    }


def _valid(study: Study, text: str) -> Plan:
    plan = read_plan(study, text)
    broken = violations(plan, study.constraints)
    if broken:
        raise PlanError("; ".join(v.sentence for v in broken), where=str(plan), hint="choose another with check_plan")
    return plan


def _step_time(prediction: Prediction) -> float:
    quantity = prediction.relative_step_time or prediction.step_time
    return quantity.value if quantity else float("inf")
