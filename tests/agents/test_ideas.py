"""Untested ideas: from records whose situation matches, bounded by the step, a model's held apart."""

import json
import math
import tomllib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.workflow.choice import ideas_of
from asap.agents.workflow.protocol import UntestedIdea
from asap.answers.inquiries import Inquiries
from asap.history.files import load_records
from asap.history.record import ChangeKind, Part
from asap.proposals.ideas import Situation, Standing, bounded, engine_ideas, is_moot, ranked
from tests.studies import study

EXPERIMENT = "llama-8b-tensor-16"
ABLATIONS = [one for one in load_records() if one.kind is not None]


@pytest.fixture(scope="module")
def inquiry(home):
    return Inquiries().of(EXPERIMENT)


def test_each_ablation_has_a_source_one_change_and_what_it_touches():
    assert len(ABLATIONS) >= 60
    for one in ABLATIONS:
        assert one.source.url
        assert one.touches
        assert ": " in one.other_changes[0]
    assert sum(one.speedup is None or one.speedup < 1 for one in ABLATIONS) > len(ABLATIONS) / 4


def test_the_engine_names_what_won_elsewhere_with_effect_and_bound(inquiry):
    found = engine_ideas(inquiry.study, inquiry.incumbent)
    assert 0 < len(found) <= 3
    for idea in found:
        assert idea.precedents
        assert idea.effect is not None
        assert (idea.bound is None) is (idea.standing is Standing.MEASURE)


def test_flags_of_another_compiler_and_changes_in_use_are_not_named(inquiry):
    for chip, foreign in (("h100", "XLA"), ("v5e", "torch.compile"), ("v5e", "SparseCore")):
        assert not [one.name for one in ranked(ABLATIONS, Situation(chip)) if one.name.startswith(foreign)]
    assert any(one.name.startswith("SparseCore") for one in ranked(ABLATIONS, Situation("v6e")))
    plan, workload = inquiry.study.plan, inquiry.study.experiment.workload
    stages = plan.model_copy(update={"pipeline_repeats": 2}).with_ici(stage=4)
    assert is_moot(stages, workload, "interleaved pipeline schedule")
    families = {"overlap of expert all-to-all": True, "asynchronous tensor parallelism": False}
    assert {one: is_moot(plan, workload, one) for one in families} == families


def test_what_only_torch_has_is_no_idea_for_a_program_of_jax():
    families = tomllib.loads((resources.files("asap.proposals") / "ideas.toml").read_text(encoding="utf-8"))
    of_torch = {name for name, known in families.items() if known.get("compiler")}
    for framework, told in (("MaxText", False), ("torchtitan", True)):
        run = study("data=64 microbatches=1 remat=full", "mixtral-8x7b", "h100-64", 128, 4096, framework)
        assert bool({one.title for one in engine_ideas(run, None, named=of_torch)} & of_torch) is told


@given(st.sampled_from(["v5e", "v6e", "h100", "a100-80gb"]), st.floats(1e8, 1e12), st.integers(512, 131072))
def test_what_is_believed_lies_within_what_was_measured(chip, parameters, sequence):
    for family in ranked(ABLATIONS, Situation(chip, parameters, sequence)):
        gains = [math.log(one.speedup) if one.speedup else math.log(0.9) for one in family.records]
        assert min(*gains, 0) <= family.gain <= max(*gains, 0)


def test_an_idea_of_a_model_is_predicted_bounded_or_to_be_measured_and_cites_what_it_was_given(inquiry):
    said = [
        UntestedIdea(kind=ChangeKind.AXIS, change="data=64 model=4", hypothesis="It saves 97.3 %."),
        UntestedIdea(kind=ChangeKind.FLAG, change="--a_flag", touches=Part.COLLECTIVES, precedents=["made-up"]),
        UntestedIdea(kind=ChangeKind.PATCH, change="another kernel"),
        UntestedIdea(kind=ChangeKind.PATCH, change="a fourth"),
    ]
    found = ideas_of(inquiry.study, inquiry.incumbent, said, Catalogue(), lambda words: f"~ {words}")
    mine = [one for one in found if one.by == "model"]
    assert [one.standing for one in mine] == [Standing.PREDICTED, Standing.BOUNDED, Standing.MEASURE]
    assert mine[0].effect is not None
    assert mine[0].hypothesis == "~ It saves 97.3 %."
    assert mine[1].precedents == ()
    assert 0 < bounded(inquiry.incumbent, Part.LOSS)[1].value < bounded(inquiry.incumbent, Part.MATMUL)[1].value < 0.7
    assert 0 < mine[1].bound.value < 1
    assert json.loads(mine[1].model_dump_json())["bound"]["provenance"] == "modelled"
