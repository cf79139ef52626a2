"""Tools on the trace of a run: its replay, and what changes of it would bring."""

from typing import Annotated

from pydantic import Field

from asap.agents.tools.results import Answer, answering, facts, named
from asap.agents.tools.study_cache import StudyCache

Limit = Annotated[int, Field(ge=1, le=20)]
Changes = Annotated[list[str], Field(min_length=1, max_length=8)]


class TraceTools:
    """Tools that replay what was recorded. They need a profile or a trace; stated facts are not enough."""

    def __init__(self, studies: StudyCache):
        self._studies = studies

    @answering
    def replay_trace(self, experiment: str, limit: Limit = 10) -> Answer:
        """Replay the recorded run: where the time of each rank goes, the critical path, and what would shorten it.

        ``waiting_s`` is time in collectives that waits for other ranks, and no transfer. Believe little of it where the
        quality is doubtful.

        Args:
            experiment: ID of the experiment.
            limit: how many ranks, and how many parts of the critical path, 1 to 20.
        """
        from asap.traces.summary import report_replay

        report = report_replay(self._studies.graph(experiment))
        return {
            "step_time_s": facts(report.step_time_s),
            "ranks": [{"rank": rank.rank, "breakdown": facts(rank.breakdown)} for rank in report.ranks[:limit]],
            "critical_path": [facts(part) | {"name": named(part.name)} for part in report.critical_path[:limit]],
            "shortened_by": [facts(each) for each in report.shortened_by],
            "quality": facts(report.quality),
            "notes": [named(note) for note in report.notes[:limit]],
        }

    @answering
    def predict_from_trace(self, experiment: str, changes: Changes) -> Answer:
        """Predict the step time of a changed run from the recorded one. Another plan, model or batch is a rough guess.

        Args:
            experiment: ID of the experiment.
            changes: made together, such as remove:host, scale:all-reduce=0.5, overlap:communication,
                plan:data=4 model=4, layers=48, hidden=8192, sequence=4096, batch=512, microbatches=8, schedule=1f1b,
                chip=h100, ranks=16.
        """
        from asap.prediction.from_trace.predict import what_if
        from asap.traces.summary import what_if_report

        graph = self._studies.graph(experiment)
        found = what_if(graph, changes, self._studies.study(experiment))
        return facts(what_if_report(graph, changes, found), "notes", "schema_")
