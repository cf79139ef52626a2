from asap.experiments import ExperimentStore
from asap.optimize.by_model import optimize_by_model
from asap.proposals.selection.choice import MEASURABLE
from asap.study.open_study import open_study


def test_a_row_that_is_faster_than_the_best_says_why_it_is_not_the_best(tmp_path):
    report = optimize_by_model(open_study("llama-8b-tensor-16", ExperimentStore(tmp_path)))
    best = report.best
    assert best is not None
    assert best.step_time_s is not None
    limit = (1 - MEASURABLE) * best.step_time_s
    faster = [each.number for each in report.tries if (each.predicted.step_time_s or limit) < limit]
    assert faster
    assert all(any(line.startswith(f"{number} is faster") for line in report.learnt) for number in faster)
