"""The one registry of tools over the engine: read-only, typed, documented for a model. It needs no google-adk."""

from collections.abc import Callable

from asap.agents.tools.library_tools import LibraryTools
from asap.agents.tools.plan_tools import PlanTools
from asap.agents.tools.results import Answer
from asap.agents.tools.run_tools import RunTools
from asap.agents.tools.scenario_tools import ScenarioTools
from asap.agents.tools.study_cache import StudyCache
from asap.agents.tools.sweep_tool import SweepTool
from asap.agents.tools.trace_tools import TraceTools

Tool = Callable[..., Answer]


class Toolbox:
    """All tools over a cache of studies, by purpose: ``first`` and ``choice`` are what a run of the agents needs."""

    def __init__(self, studies: StudyCache):
        run, plans, library = RunTools(studies), PlanTools(studies), LibraryTools(studies)
        trace, scenario = TraceTools(studies), ScenarioTools(studies)
        self.run: tuple[Tool, ...] = (
            run.get_experiment,
            run.get_kpis,
            run.get_operations,
            run.get_operation,
            run.get_roofline,
            run.get_findings,
            run.get_flags,
            trace.replay_trace,
        )
        self.plans: tuple[Tool, ...] = (
            plans.list_candidates,
            plans.predict_plan,
            plans.check_plan,
            plans.compare_plans,
            trace.predict_from_trace,
            scenario.what_if,
            SweepTool(studies).sweep,
            scenario.verify,
        )
        self.choice: tuple[Tool, ...] = (
            plans.list_candidates,
            plans.predict_plan,
            plans.compare_plans,
            run.get_operation,
            scenario.verify,
        )
        self.first: tuple[Tool, ...] = (run.get_experiment,)
        self.library: tuple[Tool, ...] = (library.search_history, library.search_knowledge)
        self.listing: tuple[Tool, ...] = (scenario.list_experiments,)

    @property
    def all(self) -> tuple[Tool, ...]:
        """Every tool."""
        return (*self.listing, *self.run, *self.plans, *self.library)
