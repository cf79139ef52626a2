import json
import math
from pathlib import Path

import pytest

from asap.agents.settings import read_settings
from asap.agents.workflow.evaluator import AgentProposer
from asap.compiler.traced.predict_algorithm import AlgorithmPredictor
from asap.core.errors import ServiceError
from asap.core.units import Provenance
from asap.experiments import ExperimentStore
from asap.mapping.check import check
from asap.optimize.loop import optimize
from asap.optimize.outcome import Code, Outcome, feedback
from asap.optimize.proposers.mapping_prior import KERNEL, PredictedMappings
from asap.optimize.proposers.model_guided import ModelGuided
from asap.optimize.proposers.study_prior import GuidedPlans, Searched
from asap.optimize.results import language_model_record
from asap.optimize.session import Session
from asap.optimize.stopping import StoppingRule
from asap.plans import Plan
from asap.sharding_memory import new_session_name
from asap.study.open_study import open_study
from mapping.table import Table
from tests.language_models.server import ModelServer, Question, Reply, Say

GOOD = "data=64 model=4 microbatches=1 remat=full"
BETTER = "data=128 model=2 microbatches=1 remat=full"


class ByDegree:
    """The less tensor parallelism, the faster; where all products are kept it does not fit."""

    def __init__(self, error):
        self.asked, self.error = list[str](), error

    def evaluate(self, configuration, place, seconds=math.inf):
        self.asked.append(configuration)
        plan = Plan.parse(configuration)
        if plan.remat is not None and plan.remat.value == "minimal":
            reason = feedback(Code.OUT_OF_MEMORY, "needs more </data> than there is")
            return Outcome(status="rejected", provenance=Provenance.MEASURED, feedback=(reason,))
        seconds = 4.0 + plan.degree("model") + self.error * len(self.asked)
        return Outcome(
            status="done", step_time_s=seconds, standard_error_s=self.error, provenance=Provenance.MEASURED,
            feedback=(feedback(Code.NOISE),) if self.error else (),
        )  # fmt: skip


@pytest.fixture
def played(home, tmp_path, monkeypatch):
    """A session of three evaluations in which a script proposes; what was evaluated, and the questions."""
    monkeypatch.setenv("GOOGLE_API_KEY", "planted")
    monkeypatch.chdir(tmp_path)
    Path("asap.toml").write_text("[agents.retries]\nattempts = 1\n")
    study = open_study("llama-8b-tensor-16", ExperimentStore())
    engine = GuidedPlans(study, Searched.of(study).proposer())

    def play(script, budget: int = 3, error: float | None = None):
        session, evaluator = Session.start(new_session_name(), {}), ByDegree(error or 0.0)
        with ModelServer(script) as server:
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
            settings = read_settings(model="gemini-2.5-flash")
            proposer = AgentProposer(engine, settings, session.worklog, budget, study)
            stopped = optimize(session, proposer, evaluator, StoppingRule(evaluations=budget))
        assert "planted" not in (home / "sessions" / f"{session.name}.jsonl").read_text()
        return session, stopped, server.questions

    return play


def choice(configuration: str, reason: str = "Less tensor parallelism.", faster: bool = True) -> Say:
    return Say(json.dumps({"configuration": configuration, "faster": faster, "reason": reason}))


def test_what_the_model_proposes_is_tried_and_it_learns_what_came_of_it(played):
    said = iter([choice(GOOD), choice(BETTER)])
    session, stopped, questions = played(lambda question: next(said), budget=3)
    assert [each.configuration for each in session.tries[1:]] == [GOOD, BETTER]
    assert session.tries[1].why == "~ Less tensor parallelism."
    assert session.tries[1].predicted.step_time_s is not None
    assert stopped.reason == "budget"
    assert "you expected it to be faster than the best; it was faster than the best" in questions[1].asked


@pytest.mark.parametrize(("wrong", "complaint"), [
    (Say("try more chips"), "not of the schema"),
    (choice("data=16 model=16 microbatches=1 remat=full"), "was tried"), (choice("data=7"), "cannot be used"),
    (choice("warp=9"), "cannot be used"),
])  # fmt: skip
def test_what_cannot_be_used_goes_back_to_the_model(played, wrong, complaint):
    said = iter([wrong, choice(GOOD)])
    session, _, questions = played(lambda question: next(said), budget=2)
    assert session.tries[1].configuration == GOOD
    assert complaint in questions[1].asked


def test_what_noise_leaves_open_is_measured_again_without_a_question(played):
    """Each run takes a second more than the last: what runs now is measured three times, without a question."""
    tried = choice("data=16 model=16 microbatches=1 remat=full")
    session, _, questions = played(lambda question: tried, budget=4, error=1.0)
    assert [each.why[:5] for each in session.tries[1:3]] == ["again", "again"]
    assert len({each.configuration for each in session.tries[:3]}) == 1
    assert all("was tried" in question.asked for question in questions[1:])
    assert len(questions) == 3


def test_a_model_that_is_always_wrong_spends_nothing_more_than_the_budget(played):
    session, stopped, questions = played(lambda question: Say("I obey no schema"), budget=3)
    assert len(session.tries) == 3
    assert stopped.reason == "budget"
    assert all("proposed nothing that can be tried" in each.why for each in session.tries[1:])
    assert len(questions) == 6


def test_a_model_may_stop(played):
    session, stopped, _ = played(lambda question: choice(""), budget=9)
    assert len(session.tries) == 1
    assert (stopped.reason, "the engine would have tried data=" in stopped.statement) == ("nothing_left", True)


def test_feedback_reaches_the_model_as_data(played):
    keeps_all = "data=256 microbatches=1 remat=minimal"

    def script(question: Question) -> Say:
        return choice(GOOD if "OUT_OF_MEMORY" in question.asked else keeps_all)

    session, _, questions = played(script, budget=3)
    assert [each.configuration for each in session.tries[1:]] == [keeps_all, GOOD]
    assert "needs more ‹/data› than there is" in questions[-1].asked


def test_precedents_and_notes_reach_the_model_and_may_be_cited(played):
    def script(question: Question) -> Say:
        heard = json.loads(question.asked[question.asked.index("{") : question.asked.rindex("}") + 1])
        columns, note = heard["notes"]["columns"], heard["notes"]["rows"][0]
        assert heard["precedents"]["rows"]
        return choice(GOOD, f"As the note says [{note[columns.index('id')]}].")

    session, _, _ = played(script, budget=2)
    assert session.tries[1].configuration == GOOD
    assert session.tries[1].why.startswith("As the note says [")


def test_the_engine_is_overruled_in_a_quarter_of_the_budget(played):
    """After the fastest has run, the model of the step expects nothing of more tensor parallelism."""
    slow = [f"data=8 model=32 microbatches={count} remat=full" for count in (1, 2, 4)]
    said = iter([choice("data=256 microbatches=1 remat=full"), *map(choice, slow), choice("")])
    session, _, questions = played(lambda question: next(said), budget=8)
    assert [each.configuration for each in session.tries if each.overrules] == slow[:2]
    (brought,) = language_model_record(Session.resume(session.name).tries)
    assert brought.endswith("2 of these against what the engine expects; 1 of the 3 became the best so far (try 2)")
    assert "save nothing that is worth" in questions[-1].asked


PROGRAM = "algorithm pumma\ngrid (4, 4)\norder {order}\nexchange {exchange}\noverlap {overlap}\n"
TEXTBOOK = PROGRAM.format(order="row", exchange="permute", overlap="on")


class OfTable:
    """What the compiler said of each program."""

    def __init__(self, table: Table):
        self.table = table

    def evaluate(self, configuration, place, seconds=math.inf):
        return self.table.outcome(configuration)


def test_a_model_drives_mapping_programs_over_the_grammar_and_the_typed_feedback(home, tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "planted")
    monkeypatch.chdir(tmp_path)
    table, session = Table("pumma"), Session.start(new_session_name(), {})
    slow = PROGRAM.format(order="col", exchange="permute", overlap="off")
    gathering = PROGRAM.format(order="row", exchange="gather", overlap="on")
    said = iter(
        [
            choice(TEXTBOOK.replace("(4, 4)", "(2, 8)").replace("row", "rwo")),
            choice("# backwards\n" + "\n".join(reversed(TEXTBOOK.splitlines()))),
            choice("\n".join(reversed(gathering.splitlines()))),
            choice("algorithm cannon\n"),
            choice(slow),
            choice(""),
        ]
    )
    engine = PredictedMappings(
        table.space, ModelGuided(table.prior, KERNEL), TEXTBOOK,
        lambda text: check(text, None, table.hardware).feedback, AlgorithmPredictor(table.hardware).seconds,
    )  # fmt: skip
    with ModelServer(lambda question: next(said)) as server:
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        proposer = AgentProposer(engine, read_settings(model="gemini-2.5-flash"), session.worklog, 8)
        optimize(session, proposer, OfTable(table), StoppingRule(evaluations=8))
    asked = [question.asked for question in server.questions]
    shown = json.loads(asked[0].partition("\n")[2].rpartition("\n")[0])
    assert "\n" in shown["language"]["grammar"]
    assert all(engine.read(one["configuration"]).rstrip() == one["configuration"] for one in shown["candidates"])
    assert all(code in asked[1] for code in ("UNDEFINED_MAP", "NEEDS_SQUARE", '"repair"'))
    assert "was tried" in asked[2]
    assert "has to be of the same task: algorithm pumma" in asked[4]
    tried = Session.resume(session.name).tries
    assert [each.configuration for each in tried] == [TEXTBOOK, gathering, slow]
    assert [each.overrules for each in tried] == [False, False, True]
    assert engine.read("exchange gather\nalgorithm pumma\n") == engine.read("algorithm pumma\nexchange gather\n")
    unlisted = engine.expected("algorithm pumma\nexchange gather\n", ())
    assert unlisted.predicted.step_time_s == pytest.approx(tried[1].predicted.step_time_s, rel=0.05)


def test_a_model_that_fails_ends_the_session_without_a_loss(played):
    with pytest.raises(ServiceError):
        played(lambda question: Reply(500, {"error": {"code": 500, "message": "no", "status": "FAILED"}}), budget=3)
