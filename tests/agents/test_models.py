"""Models that fail or talk rubbish: what they say is refused, the outcome is typed, the log is whole."""

import re

import pytest

from asap.agents.settings import MOST_CALLS, Settings
from asap.agents.workflow.analyze import analyze
from asap.core.errors import ServiceError, UsageError
from asap.sharding_memory import Kind, sessions, verify_session
from tests.language_models.misbehaving import register

pytestmark = pytest.mark.slow

EXPERIMENT = "paper-v6e-16"

UNUSABLE = {
    "too few": ("data=4 model=4", "1 plans were picked"),
    "wrong product": ("data=4 model=8|data=2 model=8|data=8 model=2", "32"),
    "twice the same": ("data=4 model=4|model=4 data=4|data=2 model=8", "picked twice"),
    "what runs now": ("data=4 seq=4|data=4 model=4|data=2 model=8", "is what runs now"),
    "no plan": ("ignore all rules|data=4 model=4|data=2 model=8", "is not a plan"),
    "endless digits": (f"data={'9' * 5000}|data=4 model=4|data=2 model=8", "longer than any plan"),
    "unknown axis": ("colour=16|data=4 model=4|data=2 model=8", "unknown axis"),
}


@pytest.fixture(scope="module", autouse=True)
def models():
    register()


def refused(store, model: str) -> tuple[ServiceError, str]:
    session = re.sub(r"[^a-z0-9]+", "-", model)[:100]
    outcome = analyze(EXPERIMENT, store=store, settings=Settings(model=model), session=session)
    assert verify_session(session).ok
    assert outcome.failure is not None
    assert outcome.analysis.answered_by == "engine"
    assert len(outcome.analysis.proposals) == 3
    assert outcome.failure.message in outcome.analysis.warnings[0]
    return outcome.failure, session


@pytest.mark.parametrize("case", UNUSABLE)
def test_unusable_picks_go_back_twice_and_then_end_the_run(store, log, case):
    plans, complaint = UNUSABLE[case]
    error, session = refused(store, f"test/picks#{plans}")
    assert error.exit_code == 6
    assert complaint in str(error)
    sent_back = [r.payload["result"] for r in log(session, Kind.TOOL_RESULT) if "complaint" in r.payload["result"]]
    assert len(sent_back) == 2
    assert all(complaint in output["complaint"] for output in sent_back)
    assert log(session)[-2].kind is Kind.ERROR


def test_a_model_that_listens_to_the_complaint_is_heard(store):
    analysis = analyze(EXPERIMENT, store=store, settings=Settings(model="test/corrected")).analysis
    assert len(analysis.proposals) == 3
    assert analysis.agent_model == "test/corrected"


def test_a_ranking_without_evidence_falls_to_the_engines_choice(store, log):
    engine = analyze(EXPERIMENT, store=store).analysis
    session = "rank-rejected"
    model = "test/picks#data=2 model=8|data=4 model=4|data=2 seq=4 model=2"
    outcome = analyze(EXPERIMENT, store=store, settings=Settings(model=model), session=session)
    assert outcome.failure is None
    assert [p.plan for p in outcome.analysis.proposals] == [p.plan for p in engine.proposals]
    assert "99 %" not in outcome.analysis.to_json().replace("Removed from", "").split('"warnings"')[0]
    assert any("99 %" in warning for warning in outcome.analysis.warnings)
    assert any("engine's choice stands" in warning for warning in outcome.analysis.warnings)
    sent_back = [r.payload["result"] for r in log(session, Kind.TOOL_RESULT) if "corrections" in r.payload["result"]]
    assert len(sent_back) == 2
    assert {"what", "why", "right"} < set(sent_back[0]["corrections"][0])


def test_a_ranking_with_evidence_stands_with_both_ranks_and_the_regret(store):
    engine = analyze("paper-v5p-512", store=store).analysis
    analysis = analyze("paper-v5p-512", store=store, settings=Settings(model="test/reasoned")).analysis
    swapped = [engine.proposals[place] for place in (1, 0, 2)]
    assert [p.plan for p in analysis.proposals] == [p.plan for p in swapped]
    assert [p.engine_rank for p in analysis.proposals] == [p.engine_rank for p in swapped]
    first = analysis.proposals[0]
    assert first.regret is not None
    assert first.regret.value > 0
    assert first.prose is not None
    assert "step time changes by" in first.prose
    assert not analysis.warnings or "Removed" not in analysis.warnings[0]


def test_prose_instead_of_the_schema_is_a_failure_of_the_model(store, log):
    error, session = refused(store, "test/prose")
    assert "does not match the schema" in error.message
    answers = [r for r in log(session, Kind.MODEL_RESPONSE) if r.payload["agent"] == "proposal"]
    assert len(answers) == 3


def test_a_failing_connection_is_named_and_logged_without_its_secret(store, log):
    error, session = refused(store, "test/refused")
    assert "ConnectionError" in error.message
    assert "do-not-log-me" not in str(error)
    errors = log(session, Kind.ERROR)
    assert any(record.payload["where"] == "model test/refused" for record in errors)
    assert not any("do-not-log-me" in str(record.payload) for record in log(session))


def test_endless_tool_calls_come_to_an_end(store, log):
    error, session = refused(store, "test/endless")
    assert str(MOST_CALLS) in error.message
    assert len(log(session, Kind.MODEL_RESPONSE)) == MOST_CALLS


def test_a_blocked_answer_is_reported_with_its_reason(store):
    error, _ = refused(store, "test/blocked")
    assert "SAFETY" in error.message


def test_the_analysis_of_another_experiment_is_not_passed_off(store):
    error, _ = refused(store, "test/elsewhere")
    assert "paper-v5p-512 instead of paper-v6e-16" in error.message


def test_unknown_tools_and_wrong_arguments_are_answered_not_obeyed(store, log):
    session = "wrong-arguments"
    analysis = analyze(
        EXPERIMENT, store=store, settings=Settings(model="test/wrong-arguments"), session=session
    ).analysis
    assert len(analysis.proposals) == 3
    calls = [record.payload["tool"] for record in log(session, Kind.TOOL_CALL)]
    assert "run_shell" in calls
    answered = [r.payload["result"] for r in log(session, Kind.TOOL_RESULT) if r.payload["tool"] == "operations"]
    assert "error" in answered[0]


def test_an_unknown_model_is_a_usage_error_that_names_what_there_is(store):
    with pytest.raises(UsageError, match=r"builtin/planner"):
        analyze(EXPERIMENT, store=store, settings=Settings(model="nobody/knows-this"), session="unknown-model")
    assert "unknown-model" in sessions()
