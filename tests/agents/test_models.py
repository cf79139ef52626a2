"""Models that fail or talk rubbish: what they say is refused, the outcome is typed, the log is whole."""

import re

import pytest

from asap.agents.settings import Settings
from asap.agents.workflow.analyze import analyze
from asap.core.errors import ServiceError, UsageError
from asap.sharding_memory import Kind, sessions, verify_session
from tests.language_models.misbehaving import register

pytestmark = pytest.mark.slow

EXPERIMENT = "paper-v6e-16"

UNUSABLE = {
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
    assert outcome.analysis.answered_by == "engine"
    assert len(outcome.analysis.proposals) == 3
    assert outcome.failure.message in outcome.analysis.warnings[0]
    return outcome.failure, session


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_pick_that_cannot_be_used_goes_back_once_and_the_others_count(store, log, case):
    plans, complaint = UNUSABLE[case]
    session = re.sub(r"[^a-z0-9]+", "-", f"unusable {case}")
    outcome = analyze(EXPERIMENT, store=store, settings=Settings(model=f"test/picks#{plans}"), session=session)
    assert outcome.failure is None
    assert len(outcome.analysis.proposals) == 3
    assert {"data=4 model=4", "data=2 model=8"} & {str(one.plan) for one in outcome.analysis.proposals}
    assert any("Not taken" in warning and complaint in warning for warning in outcome.analysis.warnings)
    sent_back = [r.payload["result"] for r in log(session, Kind.TOOL_RESULT) if "corrections" in r.payload["result"]]
    assert len(sent_back) == 1
    assert any(complaint in one for one in sent_back[0]["corrections"])


def test_one_good_pick_is_filled_up_by_the_engines(store):
    engine = analyze(EXPERIMENT, store=store).analysis
    model = "test/picks#data=4 model=4"
    outcome = analyze(EXPERIMENT, store=store, settings=Settings(model=model), session="one-pick")
    assert outcome.failure is None
    assert [one.plan for one in outcome.analysis.proposals] == [one.plan for one in engine.proposals]
    assert outcome.analysis.proposals[0].prose.startswith("~")


def test_a_plan_that_is_better_in_nothing_leaves_the_place_to_the_engines(store):
    engine = analyze(EXPERIMENT, store=store).analysis
    model = "test/picks#data=2 model=8|data=4 model=4|data=2 seq=4 model=2"
    analysis = analyze(EXPERIMENT, store=store, settings=Settings(model=model), session="worse").analysis
    assert {one.plan for one in analysis.proposals} >= {one.plan for one in engine.proposals[:2]}
    assert any("better than" in warning for warning in analysis.warnings)
    assert all("~ it saves 99 %" in (one.prose or "~ it saves 99 %") for one in analysis.proposals)


def test_a_plan_that_is_predicted_to_be_better_in_something_stands_with_both_ranks(store):
    engine = analyze("paper-v5p-512", store=store).analysis
    analysis = analyze("paper-v5p-512", store=store, settings=Settings(model="test/reasoned")).analysis
    assert {one.plan for one in analysis.proposals} == {one.plan for one in engine.proposals}
    assert all(one.engine_rank and one.regret is not None for one in analysis.proposals)
    assert not next(one.prose for one in analysis.proposals if one.prose).startswith("~")


def test_a_failing_connection_is_named_and_logged_without_its_secret(store, log):
    error, session = refused(store, "test/refused")
    assert "ConnectionError" in error.message
    assert "do-not-log-me" not in str(error)
    errors = log(session, Kind.ERROR)
    assert any(record.payload["where"] == "model test/refused" for record in errors)
    assert not any("do-not-log-me" in str(record.payload) for record in log(session))


def test_what_one_agent_finished_is_kept_when_the_next_fails(store):
    outcome = analyze(EXPERIMENT, store=store, settings=Settings(model="test/half"), session="half")
    assert outcome.failure is not None
    assert outcome.analysis.agents.statement == "~ The all-reduce looks slow to me."
    assert len(outcome.analysis.proposals) == 3


def test_an_unknown_model_is_a_usage_error_that_names_what_there_is(store):
    with pytest.raises(UsageError, match=r"builtin/planner"):
        analyze(EXPERIMENT, store=store, settings=Settings(model="nobody/knows-this"), session="unknown-model")
    assert "unknown-model" in sessions()
