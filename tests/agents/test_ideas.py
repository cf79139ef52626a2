"""Untested ideas: from records whose situation matches, bounded by the step, a model's held apart."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.workflow.choice import ideas_of
from asap.agents.workflow.protocol import UntestedIdea
from asap.answers.inquiries import Inquiries
from asap.experiments.store import BUNDLED
from asap.history.families import family_of, ranked
from asap.history.files import load_records
from asap.history.record import ChangeKind, Part
from asap.prediction.predict_study import expect
from asap.proposals.ideas import Standing, against, bounded, engine_ideas, is_moot, untried
from asap.study.study import study_of
from tests.cases import cases
from tests.studies import study

EXPERIMENT = "llama-8b-tensor-16"
ABLATIONS = [one for one in load_records() if one.kind is not None]


@pytest.fixture(scope="module")
def inquiry(home):
    return Inquiries().of(EXPERIMENT)


def test_each_ablation_has_a_source_one_change_and_what_it_touches():
    assert len(ABLATIONS) >= 60
    for one in ABLATIONS:
        assert all((one.source.url, one.touches, ": " in one.other_changes[0]))
    assert sum(one.speedup is None or one.speedup < 1 for one in ABLATIONS) > len(ABLATIONS) / 4


def test_the_engine_names_what_won_elsewhere_with_effect_and_bound():
    run = study("data=64 microbatches=1 remat=full", "mixtral-8x7b", "tpu7x-64", 512, 4096)
    found = engine_ideas(run, expect(run, [run.plan])[0])
    assert 0 < len(found) <= 3
    for idea in found:
        assert idea.precedents
        assert idea.effect is not None
        assert (idea.bound is None) is (idea.standing is Standing.MEASURE)


def test_flags_of_another_compiler_and_changes_in_use_are_not_named(inquiry):
    assert not [one.name for one in ranked(ABLATIONS, "h100") if one.name.startswith("XLA")]
    assert against(inquiry.study, "torch.compile")
    assert {one.name for one in ranked(ABLATIONS, None)} == {family_of(one) for one in ABLATIONS}
    assert "NVFP4 matmuls" in untried([one for one in ranked(ABLATIONS, "h100") if one.name.startswith("float8 m")])
    plan, workload = inquiry.study.plan, inquiry.study.experiment.workload
    stages = plan.model_copy(update={"pipeline_repeats": 2}).with_ici(stage=4)
    assert is_moot(stages, workload, "interleaved pipeline schedule")
    families = {"overlap of expert all-to-all": True, "asynchronous tensor parallelism": False}
    assert {one: is_moot(plan, workload, one) for one in families} == families


@cases("run, settings, flags, none, some")
def test_no_idea_names_what_is_set_or_cannot_be_set(run, settings, flags, none, some):
    run = study(*run, settings=settings)
    run = study_of(run.experiment.model_copy(update={"environment": {"LIBTPU_INIT_ARGS": flags}}))
    assert [name for name in none if not against(run, name)] == []
    assert {name: reason for name in some if (reason := against(run, name))} == {}
    assert not {one.title for one in engine_ideas(run, None) if against(run, one.title)}


def test_no_idea_for_a_bundled_run_is_held_against(home):
    for name in {path.name.partition(".")[0] for path in BUNDLED.glob("*.json")}:
        asked = Inquiries().of(name)
        assert not any(against(asked.study, one.title) for one in engine_ideas(asked.study, asked.incumbent))


@given(st.sampled_from(["v5e", "v6e", "h100", "a100-80gb", None]), st.floats(1e8, 1e12), st.integers(512, 131072))
def test_what_is_believed_lies_within_what_was_measured(chip, parameters, sequence):
    for family in ranked(ABLATIONS, chip, parameters, sequence):
        assert 0 <= family.gain <= max(0, *(math.log(one.speedup or 1) for one in family.records))


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
