import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from asap.diagnosis.facts import shares_of
from asap.plans import Plan
from asap.plans.enumeration import enumerate_plans
from asap.plans.validity import Constraints
from asap.prediction import profile_ratios as ratios
from asap.profiles import Kpis, Operation, Profile

PLANS = enumerate_plans(Constraints(devices_per_slice=64, slices=1), ("replica", "data", "seq", "model"))
plans = st.sampled_from(PLANS)


def run(*operations, **kpis):
    return Profile(source="test", kpis=Kpis(step_time_s=2.0, **kpis), operations=operations)


def op(fraction, bound, collective=None):
    return Operation(name="op", category="c", fraction=fraction, bound=bound, collective=collective)


RUN = run(op(0.5, "compute"), op(0.2, "hbm"), op(0.2, "unknown", "all-reduce"), op(0.1, "unknown", "all-gather"))


def predict(plan, incumbent, profile=RUN):
    return ratios.predict_from_profile(plan, incumbent, profile, ratios.MeasuredSplit.of(profile, shares_of(profile)))


@given(plans)
def test_the_incumbent_is_predicted_as_it_was_measured(plan):
    prediction = predict(plan, plan)
    assert prediction.relative_step_time.value == pytest.approx(1.0)
    assert prediction.step_time.value == pytest.approx(2.0)
    assert prediction.relative_step_time.low == prediction.relative_step_time.high


@given(plans, plans)
def test_parts_add_up_to_the_step_and_the_interval_holds_the_point(plan, incumbent):
    prediction = predict(plan, incumbent)
    assert sum(part.exposed_s for part in prediction.parts) == pytest.approx(prediction.step_time.value)
    assert prediction.step_time.low <= prediction.step_time.value <= prediction.step_time.high


@given(plans, plans)
def test_a_run_of_compute_alone_does_not_change(plan, incumbent):
    prediction = predict(plan, incumbent, run(op(1.0, "compute")))
    assert prediction.relative_step_time.value == pytest.approx(1.0)


@given(plans, plans)
def test_distance_is_symmetric_and_nought_to_the_plan_itself(plan, incumbent):
    assert ratios.doublings(plan, incumbent) == pytest.approx(ratios.doublings(incumbent, plan))
    assert (ratios.doublings(plan, incumbent) == 0) == (plan == incumbent)


@given(st.floats(0, 8), st.floats(0, 8))
def test_spread_grows_with_distance(near, far):
    near, far = sorted((near, far))
    assert ratios.spread(near) <= ratios.spread(far)
    assert ratios.spread(0) == 0
    assert ratios.spread(1) == ratios.SPREAD[1]


def test_volumes_follow_the_degrees():
    base = Plan.parse("data=4 seq=4 model=4")
    halved, deeper = base.with_ici(data=8, model=2), base.with_ici(data=8, seq=2)
    assert ratios.activations("model", halved) / ratios.activations("model", base) == pytest.approx(0.5 * 0.5 / 0.75)
    assert ratios.weights("data", deeper) / ratios.weights("data", base) == pytest.approx((7 / 8) / (3 / 4))
    assert ratios.activations("seq", base.with_ici(seq=1, data=16)) == 0


@given(plans, st.dictionaries(st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", None]), st.floats(0, 1)))
def test_exposed_time_is_kept_under_the_same_plan(plan, measured):
    assume(plan.devices > 1)
    assert ratios.exposed_under(plan, plan, measured).total == pytest.approx(sum(measured.values()))


def test_an_axis_that_is_new_takes_time_like_those_that_carry_the_same():
    incumbent = Plan.parse("data=8 model=8")
    exposed = ratios.exposed_under(Plan.parse("replica=8 model=8"), incumbent, {"all-gather": 1.0})
    assert exposed.weights > 0
    shrunk = ratios.exposed_under(Plan.parse("data=64"), incumbent, {"all-reduce": 1.0, "reduce-scatter": 1.0})
    assert shrunk.activations == 0
    assert shrunk.weights > 0


def test_a_model_axis_cuts_the_hbm_traffic_of_weights():
    assert ratios.hbm_ratio(Plan.parse("data=4 model=4"), Plan.parse("data=4 seq=4")) < 1
    assert ratios.hbm_ratio(Plan.parse("data=8"), Plan.parse("data=8")) == 1


def test_collectives_are_ascribed_to_axes_that_are_used():
    full, without = Plan.parse("data=4 seq=4 model=4"), Plan.parse("data=4 seq=4")
    assert ratios.axes_behind(ratios.ACTIVATION_AXES, "all-reduce", full) == ("model",)
    assert ratios.axes_behind(ratios.ACTIVATION_AXES, "all-reduce", without) == ()
    assert ratios.axes_behind(ratios.WEIGHT_AXES, "all-reduce", without) == ("seq",)
    assert set(ratios.axes_behind(ratios.ACTIVATION_AXES, None, full)) == {"seq", "model"}
    assert ratios.axes_behind(ratios.WEIGHT_AXES, "all-gather", Plan()) == ()
    assert 0.5 < ratios.urgent_share() < 1


def test_collectives_without_operations_come_from_the_kpi():
    split = ratios.MeasuredSplit.of(run(communication=0.25), shares_of(run()))
    assert split.collectives == {None: 0.25}
    assert split.unchanged == pytest.approx(0.75)


@given(plans, plans)
def test_what_an_added_axis_moves_was_measured_on_another_axis(plan, incumbent):
    measured = ratios.MeasuredSplit.of(RUN, shares_of(RUN)).collectives
    activations_ran = incumbent.degree("model") > 1 or incumbent.degree("seq") > 1
    weights_ran = incumbent.degree("data") > 1 or incumbent.degree("replica") > 1
    for axis in ratios.unmeasured_axes(plan, incumbent, measured):
        assert plan.degree(axis) > incumbent.degree(axis) == 1
        assert not (activations_ran if axis in ("model", "seq") else weights_ran)


def test_traffic_that_was_not_measured_is_named():
    for plan, incumbent, unmeasured in (
        ("data=16 expert=4", "data=64", ("expert",)),
        ("data=4 model=4", "data=4 seq=4", ()),
    ):
        measured = ratios.MeasuredSplit.of(RUN, shares_of(RUN)).collectives
        assert ratios.unmeasured_axes(Plan.parse(plan), Plan.parse(incumbent), measured) == unmeasured
