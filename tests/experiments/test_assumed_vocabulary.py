"""A vocabulary that no setting states is assumed and said, and a usual one widens the interval."""

import pytest

from asap.experiments import Experiment
from asap.experiments.remarks import USUAL, set_vocabulary
from asap.hardware import resolve_hardware
from asap.models import Workload, find_architecture
from asap.models.catalogue import known_architectures
from asap.plans import Plan
from asap.prediction.from_architecture import predict
from asap.prediction.uncertainty.unstated import VOCABULARIES

WORKLOAD = Workload(global_batch=256, sequence_length=4096, framework="Megatron-Core", precision="bf16")
PLAN = Plan.parse("replica=8 model=8 microbatches=32 remat=none")
HARDWARE = resolve_hardware("h100-64").slice


def without(model):
    return Experiment(id="x", model=model.model_copy(update={"vocab": None, "name": None}), workload=WORKLOAD)


@pytest.mark.parametrize("name", [*known_architectures()][::7])
def test_a_model_of_published_shapes_has_the_vocabulary_of_one_like_it(name):
    published = find_architecture(name)
    if published.missing():
        pytest.skip("its own shapes are not all known")
    found = set_vocabulary(without(published))
    assert (found.model.missing(), found.model.vocab_assumed) == ((), False)
    assert f"{found.model.vocab:,}" in found.notes[-1]


def test_shapes_that_nobody_published_have_a_usual_vocabulary_and_a_wider_interval():
    own = find_architecture("llama2-7b").model_copy(update={"layers": 31})
    assumed = set_vocabulary(without(own)).model
    assert assumed.vocab_assumed
    stated = assumed.model_copy(update={"vocab_assumed": False})
    (one,), (other,) = (predict([PLAN], model, WORKLOAD, HARDWARE) for model in (assumed, stated))
    assert one.step_time.high > other.step_time.high * one.step_time.low / other.step_time.low
    assert one.memory == other.memory


def test_what_is_assumed_and_what_it_may_be_are_those_of_the_catalogue():
    sizes = sorted(one.vocab for name in known_architectures() if (one := find_architecture(name)).vocab)
    assert sizes[len(sizes) // 2] == USUAL
    assert [sizes[len(sizes) // 8], sizes[7 * len(sizes) // 8]] == [*VOCABULARIES]


def test_nothing_is_assumed_of_a_model_that_lacks_more_or_nothing():
    whole = Experiment(id="x", model=find_architecture("llama2-7b"), workload=WORKLOAD)
    for experiment in (whole, without(whole.model.model_copy(update={"layers": None})), Experiment(id="x")):
        assert set_vocabulary(experiment) is experiment
