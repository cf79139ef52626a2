"""Tools on what could run instead: candidates, predictions, validity, comparison. Every number is the engine's."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.tables import change, printed, table
from asap.core.errors import PlanError
from asap.core.units import format_bytes, format_seconds
from asap.plans import Plan
from asap.plans.validity import unchecked, violations
from asap.prediction.predict_study import expect
from asap.prediction.prediction import Prediction
from asap.proposals.selection.choice import choose
from asap.proposals.selection.ranked_candidates import RankedCandidates
from asap.proposals.selection.strategy import title
from asap.proposals.trials import trials_of
from asap.study.study import Study

Limit = Annotated[int, Field(ge=1, le=50)]
Several = Annotated[list[str], Field(min_length=2, max_length=8)]


class PlanTools:
    """Tools over the engine's predictions."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def list_candidates(self, experiment: str, limit: Limit = 6) -> Answer:
        """List the best valid configurations for a run with their predictions, best first by gain after doubt.

        `engine_choice` holds those that the engine would propose, at most three, each of another strategy; `settings`
        what no configuration varies and is worth a test.

        Args:
            experiment: ID of the experiment.
            limit: how many candidates, 1 to 50.
        """
        ranked = self._studies.candidates(experiment)
        chosen = [candidate.plan for candidate in choose(ranked.candidates, ranked.study.plan)]
        shown = [c.prediction for n, c in enumerate(ranked.candidates, 1) if n <= limit or c.plan in chosen]
        return {
            "considered": ranked.considered,
            "incumbent": _row(ranked, ranked.incumbent) if ranked.incumbent else None,
            "engine_choice": [plan.beside(ranked.study.plan) for plan in chosen],
            "candidates": table([_row(ranked, prediction) for prediction in shown]),
            "settings": [{"setting": trial.statement, "line": trial.line} for trial in trials_of(ranked.study)],
            **_footing(shown),
        }

    @answering
    def predict_plan(self, experiment: str, plan: str) -> Answer:
        """Predict one configuration in full: step time with its 90 % interval, its parts, communication, HBM by part.

        Args:
            experiment: ID of the experiment.
            plan: axes and settings, such as `data=32 seq=2 model=2 remat=full`; what it leaves out stays as it is now.
        """
        study = self._studies.study(experiment)
        (prediction,) = expect(study, [_valid(study, plan)])
        return _row(self._studies.candidates(experiment), prediction) | _parts(prediction) | _footing([prediction])

    @answering
    def check_plan(self, experiment: str, plan: str) -> Answer:
        """Check whether a configuration can run: devices, batch, sequence, heads, experts, layers.

        Args:
            experiment: ID of the experiment.
            plan: axes and settings, such as `data=32 seq=2 model=2`.
        """
        study = self._studies.study(experiment)
        parsed = study.complete(Plan.parse(plan))
        broken = [violation.sentence for violation in violations(parsed, study.constraints)]
        return {
            "plan": parsed.beside(study.plan),
            "valid": not broken,
            "violations": broken,
            "not_checked": unchecked(study.constraints),
        }

    @answering
    def compare_plans(self, experiment: str, plans: Several) -> Answer:
        """Predict several configurations side by side, fastest first: rivals, or one lever swept over its values.

        Args:
            experiment: ID of the experiment.
            plans: two to eight, such as `data=32 seq=2 model=2 remat=minimal`.
        """
        study, ranked = self._studies.study(experiment), self._studies.candidates(experiment)
        predictions = sorted(expect(study, [_valid(study, plan) for plan in plans]), key=_step_time)
        return {"plans": table([_row(ranked, prediction) for prediction in predictions]), **_footing(predictions)}


def prediction_row(prediction: Prediction) -> Answer:
    """A prediction on one line of a table."""
    memory = prediction.memory
    return {
        "plan": str(prediction.plan),
        "step_time": printed(prediction.step_time),
        "vs_now": change(prediction.relative_step_time),
        "communication": printed(prediction.communication),
        "hbm": f"{printed(memory.total)} of {format_bytes(memory.capacity_bytes)}" if memory else None,
        "fit": memory.verdict if memory else None,
        "mfu": printed(prediction.mfu),
    }


def _row(ranked: RankedCandidates, prediction: Prediction) -> Answer:
    found = ((n, one.strategy) for n, one in enumerate(ranked.candidates, 1) if one.plan == prediction.plan)
    rank, strategy = next(found, (None, ""))
    incumbent, over = ranked.study.plan, ranked.study.experiment.workload.experts_over
    placed = {"rank": rank, "strategy": title(prediction.plan, incumbent, strategy, over) if incumbent else None}
    return placed | prediction_row(prediction) | {"plan": prediction.plan.beside(incumbent)}


def _parts(prediction: Prediction) -> Answer:
    """Where the predicted time and memory go, the largest first."""
    time = sorted(prediction.parts, key=lambda part: -part.exposed_s)
    memory = sorted(prediction.memory.parts, key=lambda part: -part.size_bytes) if prediction.memory else []
    return {
        "time_parts": table(
            [
                {"part": part.name, "axis": part.axis, "time": format_seconds(part.exposed_s), "busy_s": part.busy_s}
                for part in time
            ]
        ),
        "memory_parts": table([{"part": part.name, "hbm": format_bytes(part.size_bytes)} for part in memory]),
        "reading": "time: what the part adds to the step; busy_s: how long it runs, hidden or not",
    }


def _footing(predictions: Sequence[Prediction]) -> Answer:
    """What all predictions rest on, once: provenance, source, notes."""
    quantities = [p.step_time or p.relative_step_time for p in predictions]
    rests = dict.fromkeys(f"{q.provenance.value}: {q.source}" for q in quantities if q is not None)
    notes = dict.fromkeys(note for prediction in predictions for note in prediction.notes)
    return {"rests_on": list(rests)[:3], "notes": list(notes)[:6]}


def _valid(study: Study, text: str) -> Plan:
    plan = study.complete(Plan.parse(text))
    broken = violations(plan, study.constraints)
    if broken:
        raise PlanError("; ".join(v.sentence for v in broken), where=str(plan), hint="choose another with check_plan")
    return plan


def _step_time(prediction: Prediction) -> float:
    quantity = prediction.relative_step_time or prediction.step_time
    return quantity.value if quantity else float("inf")
