"""The flags of a study: what a profile shows to cost nothing is not proposed, and a plan brings its own."""

import json
from pathlib import Path

import pytest

from asap.experiments import Experiment, HardwareReference
from asap.flags import FlagReview, Situation, review_flags
from asap.hardware import load_chip
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.profiles import Kpis, Operation, Profile
from asap.study.flags import flags_for, flags_of, flags_of_record
from asap.study.study import study_of

RUN = Experiment(
    id="run", hardware=HardwareReference(name="v5e-8", chip="v5e", slices=2, devices=16),
    plan=Plan.parse("data=8 dcn.data=2 remat=full"), workload=Workload(framework="MaxText"),
    environment={"LIBTPU_INIT_ARGS": "--xla_enable_async_all_gather=true"},
)  # fmt: skip
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


FILE = Path(__file__).parents[1] / "data" / "flags" / "recipes.jsonl"
RECIPES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def review(recipe) -> FlagReview:
    experts = {"experts": 8, "experts_per_token": 2} if recipe["mixture"] else {}
    model = Architecture(layers=8, d_model=64, **experts)
    where = Situation(Plan.parse(recipe["plan"]), load_chip(recipe["chip"]), "maxtext", model)
    return review_flags({"LIBTPU_INIT_ARGS": recipe["flags"]}, where)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe["source"].rpartition("/training/")[2][-60:])
def test_its_flags_are_recognised_and_none_is_called_harmful(recipe):
    found = review(recipe)
    assert [flag.name for flag in found.set if flag.purpose is None] == []
    assert {advice.kind for advice in found.unwise} <= {"contradictory"}
    assert len(found.missing) <= 2


def test_what_tpu_recipes_publishes_lacks_nothing():
    published = [recipe for recipe in RECIPES if "tpu-recipes" in recipe["source"]]
    assert len(published) > 10
    assert [recipe["source"] for recipe in published if review(recipe).missing] == []


def test_few_configurations_of_maxtext_lack_anything():
    lacking = [recipe for recipe in RECIPES if review(recipe).missing]
    assert len(lacking) <= len(RECIPES) / 4
