"""What past runs add to the expected gain of a plan."""

import pytest

from asap.experiments import ExperimentStore
from asap.history import Outcome, add
from asap.plans import Plan
from asap.proposals.selection.precedents import precedent_gains
from asap.study.open_study import open_study
from tests.proposals.conftest import precedent

TO = Plan.parse("data=8 seq=2")


@pytest.mark.parametrize(
    ("outcome", "speedup", "sign"),
    [
        (Outcome.IMPROVED, 1.25, 1),
        (Outcome.SLOWER, 0.8, -1),
        (Outcome.OUT_OF_MEMORY, None, 0),
        (Outcome.IMPROVED, None, 0),
    ],
)
def test_a_run_speaks_of_time_only_where_both_steps_were_measured(monkeypatch, tmp_path, outcome, speedup, sign):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    study = open_study("paper-v6e-16", ExperimentStore())
    before = precedent_gains(study, [TO])[TO]
    add(precedent("halved-seq", "data=4 seq=4", str(TO), outcome, speedup))
    added = precedent_gains(study, [TO])[TO] - before
    assert (added > 0) - (added < 0) == sign
