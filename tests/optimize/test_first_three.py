from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from asap.core.units import Provenance, Quantity, format_percent, format_seconds, significant
from asap.optimize.by_model import REGRETS, first_three
from asap.plans import Plan
from asap.prediction.prediction import Prediction

PLANS = [
    Plan.parse(f"replica={64 // model} model={model} remat={remat}")
    for model in (1, 2, 4, 8)
    for remat in ("full", "none")
]


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
