import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from asap.core.units import Provenance, Quantity, format_percent, format_seconds, significant
from asap.experiments import ExperimentStore
from asap.optimize.by_model import REGRETS, first_three, optimize_by_model, worse_bets
from asap.optimize.report import OptimizationReport
from asap.optimize.table import print_report
from asap.plans import Plan
from asap.prediction.prediction import Prediction
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.study.open_study import open_study
from asap.study.study import Study
from tests.studies import study


def run(model: str, hardware: str, plan: str, batch: int, sequence: int, framework: str = "MaxText") -> Study:
    return study(plan, model, hardware, batch, sequence, framework)


def shown(report: OptimizationReport) -> str:
    console = Console(width=200, record=True)
    print_report(report, console)
    return console.export_text()


def test_a_row_that_is_faster_than_the_best_says_why_it_is_not_the_best(tmp_path):
    study = open_study("llama-8b-tensor-16", ExperimentStore(tmp_path))
    best, *others = propose(rank_candidates(study, {}), lambda study, plan: ()).proposals
    (line,) = worse_bets([*others, best], first_number=2)
    assert line.startswith(f"{len(others) + 2} is faster by the model, but the worse bet: P(fits) ")
    assert "P(faster)" in line
    assert list(worse_bets([best, *others], first_number=2)) == []
    assert not any("worse bet" in line for line in optimize_by_model(study).learnt)


def test_where_what_runs_does_not_fit_the_worse_bet_is_what_may_take_longer(tmp_path):
    found = optimize_by_model(open_study("llama-8b-too-large", ExperimentStore(tmp_path)))
    worse = [line for line in found.learnt if "worse bet" in line]
    said = [re.search(r"interval is \+(\d+) % against what runs now, that of 2 \+(\d+) %\.", line) for line in worse]
    assert worse
    assert all(one and int(one[1]) >= int(one[2]) for one in said)


def test_a_worse_bet_is_not_told_an_end_of_its_interval_that_is_better():
    study = run("llama3.1-70b", "h200-8", "data=8 microbatches=1 remat=full", 16, 8192, "torchtitan")
    (line, *_) = (line for line in optimize_by_model(study).learnt if "worse bet" in line)
    assert re.search(r"P\(fits\) \d\d %, that of 2 (\d\d|>99) %\.$", line)


def test_what_may_fit_is_not_said_not_to():
    found = optimize_by_model(run("llama3.1-8b", "v5e-256", "data=256 microbatches=1 remat=full", 1024, 7168))
    now, *others = [each.outcome for each in found.tries]
    says = r"may not fit: .* [GM]iB too much for 15\.8 GiB, .*; P\(fits\) \d\d %$"
    assert re.match(says, now.feedback[0].explanation)
    assert not any(each.feedback for each in others)


def test_the_odds_that_the_best_fits_are_said_where_it_is_tight():
    found = optimize_by_model(run("mixtral-8x7b", "v5p-128", "data=64 microbatches=1 remat=full", 256, 4096))
    sure = optimize_by_model(run("llama3.1-8b", "v5p-64", "data=32 microbatches=1 remat=minimal", 32, 8192))
    assert re.search(r"P\(fits\) \d\d %", found.best.evidence)
    assert "P(fits)" not in sure.best.evidence


def test_what_it_says_of_a_row_is_under_the_number_of_the_row():
    found = optimize_by_model(run("llama3.1-8b", "v6e-64", "data=64 microbatches=1 remat=context", 128, 8192))
    (said,) = (line for line in found.learnt if line.startswith("If you test one"))
    assert re.match(r"If you test one, test 2 \(", said)
    assert found.best.configuration == found.tries[0].configuration
    assert found.tries[1].outcome.step_time_s < found.tries[0].outcome.step_time_s


def test_rows_are_set_against_the_first_that_fits(tmp_path):
    too_large, *_ = shown(optimize_by_model(open_study("llama-8b-too-large", ExperimentStore(tmp_path)))).splitlines()
    fits, *_ = shown(optimize_by_model(open_study("llama-8b-tensor-16", ExperimentStore(tmp_path)))).splitlines()
    assert too_large.split() == ["#", "configuration", "why", "outcome", "against", "2"]
    assert fits.split() == ["#", "configuration", "why", "outcome", "against", "1"]


PLANS = [Plan.parse(f"replica={64 // n} model={n} remat={remat}") for n in (1, 2, 4, 8) for remat in ("full", "none")]


def candidates(seconds: list[float]) -> list[Prediction]:
    of = {"unit": "s", "provenance": Provenance.MODELLED, "source": "a test"}
    steps = [Quantity(value=value, low=value / 1.3, high=value * 1.3, **of) for value in seconds]
    return [
        Prediction(plan=plan, method="architecture", step_time=step, parts=(), notes=())
        for plan, step in zip(PLANS, steps, strict=False)
    ]


@settings(max_examples=25)
@given(st.lists(st.floats(1.0, 2.0), min_size=1, max_size=8))
def test_the_offer_costs_the_steps_of_the_first_three(seconds):
    offer, cost = first_three(candidates(sorted(seconds)), 64), 25 * sum(sorted(seconds)[:3])
    assert (offer is None) == (len(seconds) < 2)
    if offer:
        assert offer.startswith(f"Measure the first {min(3, len(seconds))} ")
        assert f": 25 steps each, {format_seconds(cost)}, {significant(64 * cost / 3600, 2)} chip-hours" in offer


def test_the_regret_is_the_one_of_the_accuracy_page():
    page = (Path(__file__).parents[2] / "docs" / "accuracy.md").read_text(encoding="utf-8")
    for first, after, groups in REGRETS:
        assert f"{format_percent(first)} / {format_percent(after)} ({groups} groups)" in page
