"""What `analyze` does when something around the agents is missing or broken."""

import gc
import subprocess
import sys

import pytest

from asap.agents.workflow.analyze import analyze
from asap.core.errors import NotFoundError, PlanError
from asap.experiments import Experiment, HardwareReference
from asap.plans import Plan
from asap.proposals.selection.candidate import Candidate
from asap.sharding_memory import Kind, verify_session

pytestmark = pytest.mark.slow


def test_too_little_evidence_gives_an_analysis_without_proposals(store):
    store.add(Experiment(id="bare"), replace=True)
    analysis = analyze("bare", store=store).analysis
    assert analysis.diagnosis.bottleneck == "insufficient_evidence"
    assert analysis.proposals == ()
    assert analysis.recommendation.keep_incumbent
    assert "No proposal" in analysis.recommendation.statement


def test_what_the_user_states_beside_the_record_is_used_and_logged(store, log):
    def amend(experiment):
        return experiment.model_copy(update={"plan": Plan.parse("data=2 seq=2 model=4")})

    analysis = analyze("paper-v6e-16", store=store, amend=amend, session="amended").analysis
    assert str(analysis.experiment.plan) == "data=2 seq=2 model=4"
    assert "data=2 seq=2 model=4" not in [str(proposal.plan) for proposal in analysis.proposals]
    assert log("amended", Kind.NOTE)[0].payload["experiment"]["plan"]["ici"]["model"] == 4


def test_an_unknown_experiment_fails_before_any_agent_and_is_logged(store, log):
    with pytest.raises(NotFoundError, match="paper-v6e-16"):
        analyze("paper-v6e-61", store=store, session="unknown")
    assert [record.kind for record in log("unknown")] == [Kind.USER_INPUT, Kind.ERROR]


def test_a_stated_plan_that_does_not_fit_is_a_plan_error(store):
    def amend(experiment):
        return experiment.model_copy(update={"plan": Plan.parse("data=3")})

    with pytest.raises(PlanError, match="16"):
        analyze("paper-v6e-16", store=store, amend=amend)


def test_an_unwritable_home_costs_the_log_but_not_the_analysis(store, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "file" / "home"))
    outcome = analyze("paper-v6e-16", store=store)
    assert len(outcome.analysis.proposals) == 3
    assert "ASAP_HOME" in str(outcome.worklog_failure)


def test_two_analyses_may_share_a_session(store, log):
    for experiment in ("paper-v6e-16", "paper-v5e-256"):
        analysis = analyze(experiment, store=store, session="shared").analysis
        assert analysis.experiment.id == experiment
    assert len(log("shared", Kind.USER_INPUT)) == 2
    assert verify_session("shared").ok


def test_progress_tells_who_does_what(store):
    stages = []
    analyze("paper-v6e-16", store=store, progress=stages.append)
    assert "analyzer: answers" in stages


def test_nothing_of_google_adk_is_printed(store, capfd, recwarn):
    store.add(Experiment(id="quiet", hardware=HardwareReference(name="v5e-16")), replace=True)
    analyze("quiet", store=store)
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")
    assert not [warning for warning in recwarn if "EXPERIMENTAL" in str(warning.message)]


def test_an_analysis_without_a_language_model_loads_nothing_of_google():
    program = """
import sys, asap.agents.tools.toolbox
from asap.agents.workflow.analyze import analyze
from asap.experiments import ExperimentStore
analyze("paper-v6e-16", store=ExperimentStore())
sys.exit(any(name.startswith(("google.", "fastapi", "aiohttp", "httpx")) for name in sys.modules))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_analysis_that_is_over_is_not_kept_in_memory(store):
    """As a server makes many of them in one process."""
    for _ in "12":
        analyze("paper-v6e-16", store=store)
    gc.collect()
    before = sum(isinstance(one, Candidate) for one in gc.get_objects())
    for _ in "123":
        analyze("paper-v6e-16", store=store)
    gc.collect()
    assert sum(isinstance(one, Candidate) for one in gc.get_objects()) <= before
