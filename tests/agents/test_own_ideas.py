"""A model over real protocols plays a whole analysis: within its budget, with words and a plan of its own."""

import json

import pytest

from asap.agents.llm.budget import CHARACTERS_OF_TOKEN
from asap.agents.settings import Retries, Settings
from asap.agents.workflow.analyze import analyze
from asap.reports.markdown import to_markdown
from tests.agents.services import GEMINI, LITELLM, OPENAI
from tests.language_models.scripts import well
from tests.language_models.server import Ask, ModelServer

pytestmark = pytest.mark.slow

EXPERIMENT = "llama-8b-tensor-16"
MODELS = [GEMINI, pytest.param(OPENAI, marks=LITELLM)]
MOST_TOKENS, MOST_REQUESTS = 25_000, 8
HYPOTHESIS = "Tensor parallelism binds this run; I doubt that <b>anything</b> else does."


@pytest.fixture
def served(monkeypatch, store):
    """An analysis with a scripted model, and what it was asked."""

    def run(script, model):
        with ModelServer(script) as server:
            for name in ("GOOGLE_API_KEY", "OPENAI_API_KEY"):
                monkeypatch.setenv(name, "planted-key-5f0e2c7b9a")
            monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
            monkeypatch.setenv("OPENAI_API_BASE", server.url)
            settings = Settings(model=model, retries=Retries(timeout_s=60, attempts=2))
            return analyze(EXPERIMENT, store=store, settings=settings), server.questions

    return run


def own_idea(plan):
    """A model that compares a plan of its own with the engine's choice, and puts it last."""

    def script(question):
        if question.agent == "critic":
            return Ask([("set_model_response", {"summary": "It saves 97.3 %."})])
        if question.agent == "analyzer":
            return Ask([("set_model_response", {"statement": HYPOTHESIS, "missing": ["Does the batch vary?"]})])
        chosen = json.loads(question.asked)["facts"]["candidates"]["proposals"]
        if "compare" not in question.answers:
            return Ask([("compare", {"experiment": EXPERIMENT, "plans": [chosen[-1], plan]})])
        picks = [{"plan": one, "reason": "The engine's."} for one in chosen[:-1]]
        picks.append({"plan": plan, "reason": f"Its step takes {{{plan.replace(' ', ',')}.step_time}}."})
        return Ask([("set_model_response", {"picks": picks, "recommendation": "The first."})])

    return script


@pytest.fixture(scope="module")
def unlisted(home):
    """A valid plan that the engine does not list and predicts to be better than its last choice."""
    from asap.answers.inquiries import Inquiries
    from asap.plans.validity import violations
    from asap.prediction.predict_study import candidate_plans, expect
    from asap.proposals.selection.candidate import fits
    from asap.proposals.selection.choice import choose

    studies = Inquiries()
    ranked = studies.candidates(EXPERIMENT)
    study, listed = ranked.study, {candidate.plan for candidate in ranked.candidates}
    last = choose(ranked.candidates, study.plan)[-1].prediction
    tried = [plan.model_copy(update={"microbatches": 2}) for plan in [c.plan for c in ranked.candidates[:40]]]
    tried += candidate_plans(study)
    valid = [p for p in tried if p not in listed and p != study.plan and not violations(p, study.constraints)]
    assert last.relative_step_time is not None
    for found in expect(study, valid):
        faster = found.relative_step_time and found.relative_step_time.value < last.relative_step_time.value
        if faster and fits(found):
            return str(found.plan)
    pytest.skip("every better plan is listed")


@pytest.mark.parametrize("model", MODELS)
def test_a_plan_of_the_models_own_is_checked_marked_and_shown_with_its_words(served, unlisted, model):
    outcome, _ = served(own_idea(unlisted), model)
    assert outcome.failure is None
    analysis = outcome.analysis
    assert [one.agents_idea for one in analysis.proposals] == [False, False, True]
    assert str(analysis.proposals[-1].plan) == unlisted
    assert analysis.agents.statement == f"~ {HYPOTHESIS}"
    assert analysis.agents.summary == "~ It saves 97.3 %."
    assert "[modelled]" in (analysis.proposals[-1].prose or "")
    text = to_markdown(analysis)
    assert "its own idea" in text
    assert "## The model's words" in text.replace("’", "'")
    assert "<b>" not in text


LOOKED_UP = {
    "analyzer": [("operation", {"name": "1"}), ("flags", {})],
    "proposal": [("notes", {"words": "tensor parallelism"}), ("compare", {"plans": ["1", "2", "3"]})],
    "critic": [("memory", {"plan": "1"}), ("precedents", {})],
}


def thorough(question):
    """A model that looks up what it may, and whose words go back to it."""
    if not question.answers:
        return Ask([(name, {"experiment": EXPERIMENT, **given}) for name, given in LOOKED_UP[question.agent]])
    answer = well(question).calls[0][1]
    words = {"analyzer": "statement", "proposal": "recommendation", "critic": "summary"}[question.agent]
    return Ask([("set_model_response", {**answer, words: "It saves 97.3 % of the step."})])


def test_a_thorough_analysis_stays_within_its_budget_and_goes_on_in_its_context_after_a_complaint(served):
    outcome, questions = served(thorough, GEMINI)
    assert outcome.failure is None
    assert len(questions) == MOST_REQUESTS
    assert sum(len(question.text) for question in questions) / CHARACTERS_OF_TOKEN <= MOST_TOKENS
    asked = [question for question in questions if question.agent == "proposal"]
    assert "complaint" in asked[-1].answers["set_model_response"]
    assert len(json.loads(asked[-1].text)["contents"]) > len(json.loads(asked[0].text)["contents"])
