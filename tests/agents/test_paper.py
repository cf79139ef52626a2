"""The three experiments of the ASAP paper, end to end: real nodes, real log; built-in model, and a served one."""

import asyncio

import pytest
from google.adk.sessions.sqlite_session_service import SqliteSessionService

from asap.agents.settings import Settings
from asap.agents.workflow.adk_run import FILE, USER
from asap.agents.workflow.analyze import analyze
from asap.experiments import ExperimentStore
from asap.knowledge import get_note
from asap.plans import Plan
from asap.plans.validity import violations
from asap.prediction.predict_study import expect
from asap.sharding_memory import Kind, verify_session
from asap.study.open_study import open_study
from tests.cases import kept
from tests.language_models.scripts import well

pytestmark = pytest.mark.slow

PAPER = kept(__file__)["PAPER"]
"""Bottleneck and expert mesh (section 3)."""

AGENTS = ["analyzer", "proposal", "critic"]


@pytest.fixture(scope="module", params=PAPER)
def experiment(request):
    return request.param


@pytest.fixture(scope="module")
def analysis(experiment, home):
    outcome = analyze(experiment, store=ExperimentStore())
    assert outcome.worklog_failure is None
    return outcome.analysis


def test_the_bottleneck_is_named_and_the_experts_mesh_proposed(experiment, analysis):
    bottleneck, expert = PAPER[experiment]
    assert analysis.diagnosis.bottleneck == bottleneck
    assert Plan.parse(expert) in [proposal.plan for proposal in analysis.proposals]


def test_three_valid_plans_with_the_engines_own_predictions(experiment, analysis):
    study = open_study(experiment, ExperimentStore())
    plans = [proposal.plan for proposal in analysis.proposals]
    assert len(set(map(str, plans))) == 3
    assert not any(violations(plan, study.constraints) for plan in plans)
    assert [proposal.prediction for proposal in analysis.proposals] == expect(study, plans)


def test_each_proposal_cites_a_note_that_exists(analysis):
    for proposal in analysis.proposals:
        principles = [citation for citation in proposal.citations if citation.kind == "principle"]
        assert principles
        for citation in principles:
            assert get_note(citation.id).title == citation.title
            assert citation.supports


def test_the_log_holds_every_step_in_order(analysis, log):
    session = analysis.session
    for kind in (Kind.MODEL_REQUEST, Kind.MODEL_RESPONSE):
        assert [record.payload["agent"] for record in log(session, kind)] == AGENTS
    nodes = [record.payload["node"] for record in log(session, Kind.RESULT)]
    assert nodes == ["open_experiment", "analyzer", "assess", "proposal", "choose", "critic", "assemble", "analysis"]
    first, last = log(session)[0], log(session)[-1]
    assert (first.kind, first.payload["text"]) == (Kind.USER_INPUT, f"analyze {analysis.experiment.id}")
    assert (last.kind, last.payload["output"]) == (Kind.RESULT, analysis.model_dump(mode="json", by_alias=True))
    assert verify_session(session).ok


def test_a_language_model_is_told_its_role_and_another_process_can_take_the_conversation_up(
    serving, store, log, home, monkeypatch
):
    monkeypatch.setenv("GOOGLE_API_KEY", "none")
    serving(well)
    session = analyze("paper-v6e-16", store=store, settings=Settings(model="gemini-2.5-flash")).analysis.session
    calls, results = log(session, Kind.TOOL_CALL), log(session, Kind.TOOL_RESULT)
    asked = [(record.payload["agent"], record.payload["tool"]) for record in calls]
    assert asked == [(agent, "set_model_response") for agent in AGENTS]
    assert {record.payload["call"] for record in results} == {record.payload["call"] for record in calls}
    transcript = {record.payload["agent"]: record.payload for record in log(session, Kind.MODEL_REQUEST)}
    assert list(transcript) == AGENTS
    assert all("# " in payload["instruction"] for payload in transcript.values())
    service = SqliteSessionService(str(home / FILE))
    kept = asyncio.run(service.get_session(app_name="agents", user_id=USER, session_id=session))
    assert any(len((event.output or {}).get("proposals", ())) == 3 for event in kept.events)
