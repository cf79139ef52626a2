"""The one registry of tools over the engine: read-only, typed, documented for a model. It needs no google-adk."""

from collections.abc import Callable

from asap.agents.answers import Answer
from asap.agents.desk import Desk
from asap.agents.library_tools import LibraryTools
from asap.agents.plan_tools import PlanTools
from asap.agents.run_tools import RunTools

Tool = Callable[..., Answer]


class Toolbox:
    """All tools over a desk, by what they are for."""

    def __init__(self, desk: Desk):
        run, plans, library = RunTools(desk), PlanTools(desk), LibraryTools(desk)
        self.run: tuple[Tool, ...] = (
            run.get_experiment,
            run.get_kpis,
            run.get_operations,
            run.get_roofline,
            run.get_findings,
        )
        self.plans: tuple[Tool, ...] = (
            plans.list_candidates,
            plans.predict_plan,
            plans.check_plan,
            plans.compare_plans,
        )
        self.library: tuple[Tool, ...] = (library.search_history, library.search_knowledge)

    @property
    def all(self) -> tuple[Tool, ...]:
        """Every tool."""
        return (*self.run, *self.plans, *self.library)
