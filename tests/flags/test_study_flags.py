"""The flags of a study: what a profile shows to cost nothing is not proposed, and a plan brings its own."""

from asap.experiments import Experiment, HardwareReference
from asap.models import Workload
from asap.plans import Plan
from asap.profiles import Kpis, Operation, Profile
from asap.study.flags import flags_for, flags_of, flags_of_record
from asap.study.study import study_of

RUN = Experiment(
    id="run",
    hardware=HardwareReference(name="v5e-8", chip="v5e", slices=2, devices=16),
    plan=Plan.parse("data=8 dcn.data=2 remat=full"),
    workload=Workload(framework="MaxText"),
    environment={"LIBTPU_INIT_ARGS": "--xla_enable_async_all_gather=true"},
)
BETWEEN_SLICES = "overlap of gradient all-reduces between slices"


def profile(communication):
    operations = (
        Operation(name="all-reduce.1", category="all-reduce", fraction=communication, collective="all-reduce"),
        Operation(name="fusion.1", category="fusion", fraction=0.9 - communication, bound="compute"),
    )
    return Profile(source="test", operations=operations, kpis=Kpis(communication=communication))


def titles(review):
    return [advice.title for advice in review.missing]


def test_collectives_that_take_no_time_ask_for_no_flags():
    assert titles(flags_of(study_of(RUN))) == titles(flags_of_record(RUN)) == [BETWEEN_SLICES]
    assert titles(flags_of(study_of(RUN, profile(0.2)))) == [BETWEEN_SLICES]
    assert titles(flags_of(study_of(RUN, profile(0.01)))) == []


def test_a_plan_asks_for_what_the_one_that_runs_does_not_need():
    offloading = Plan.parse("data=8 dcn.data=2 remat=offload offload=activations")
    review = flags_for(study_of(RUN), offloading)
    assert titles(review) == ["overlap of host copies"]
    assert "host_transfer_overlap_limit" in review.exports[0]
    assert titles(flags_for(study_of(RUN), Plan.parse("data=4 model=2 dcn.data=2"))) == []


def test_a_record_without_hardware_or_plan_has_no_missing_flags():
    bare = RUN.model_copy(update={"hardware": HardwareReference(), "plan": None})
    assert flags_of_record(bare).missing == ()
    assert flags_of_record(bare).on_record
