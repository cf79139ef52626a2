from hypothesis import given, settings
from hypothesis import strategies as st

from asap.core.units import Provenance, Quantity
from asap.optimize.first_three import first_three
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
@given(st.lists(st.floats(1.0, 2.0), min_size=2, max_size=8))
def test_measuring_three_never_lies_further_behind_than_the_first_alone(seconds):
    offer = first_three(candidates(sorted(seconds)), 64)
    assert offer is not None
    assert 0 <= offer.regret.after <= offer.regret.of_first
    assert offer.chip_hours == 64 * offer.seconds / 3600
    assert offer.seconds == sum(sorted(seconds)[:3]) * 25


def test_three_of_three_leave_nothing_behind_and_a_clear_first_has_no_regret():
    three = first_three(candidates([1.0, 1.01, 1.02]), 8)
    assert three is not None
    assert three.regret.after == 0
    clear = first_three(candidates([1.0, 50.0, 60.0, 70.0]), 8)
    assert clear is not None
    assert clear.regret.of_first < 1e-3
    assert first_three(candidates([1.0]), 8) is None
