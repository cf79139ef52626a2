"""Other hardware by its name, and how many of it."""

import pytest

from asap.chat.understanding.quantities.hardware.hardware_names import hardware_in, says_how_many, without_count
from asap.experiments import Experiment, ExperimentStore
from asap.plans import Plan
from tests.chat.conftest import LLAMA


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("what about v5e-128?", "v5e-128"),
        ("and on 64 h100s?", "h100-64"),
        ("h200 instead of a100-80gb", "h200"),
        ("would mi300x be faster", "mi300x"),
        ("how long is a step on 8x p5.48xlarge?", "8x p5.48xlarge"),
        ("what about 16 p5en.48xlarge machines?", "16x p5en.48xlarge"),
        ("p4d.24xlarge-32 then", "p4d.24xlarge-32"),
        ("a3-megagpu-8g rather than a3-highgpu-8g", "a3-megagpu-8g"),
        ("is the batch of 128 too small?", None),
    ],
)
def test_hardware_is_read_by_its_name(text, name):
    assert hardware_in(text)[0] == name


@pytest.mark.parametrize(
    ("name", "sized", "alone"),
    [
        ("v5e-256", True, "v5e"),
        ("a100-40gb", False, "a100-40gb"),
        ("a100-80gb-64", True, "a100-80gb"),
        ("8x p5.48xlarge", True, "p5.48xlarge"),
        ("p5.48xlarge", False, "p5.48xlarge"),
        ("p5.48xlarge-0", False, "p5.48xlarge-0"),
        ("v99-12", False, "v99-12"),
    ],
)
def test_a_hyphen_alone_is_no_count(name, sized, alone):
    assert says_how_many(name) is sized
    assert without_count(name) == alone


@pytest.fixture
def on_aws(start):
    """A dense decoder on eight machines p4d.24xlarge."""
    ExperimentStore().add(Experiment.model_validate({
        "id": "aws", "model": LLAMA,
        "workload": {
            "global_batch": 128, "sequence_length": 4096, "precision": "bf16", "optimizer": "adamw",
            "framework": "Megatron-Core",
        },
        "hardware": {"name": "8x p4d.24xlarge", "chip": "a100-40gb", "devices": 64},
        "plan": Plan.parse("replica=32 model=2 microbatches=4 remat=full").model_dump(mode="json"),
    }), replace=True)  # fmt: skip
    return start("aws")


@pytest.mark.slow
def test_a_number_of_chips_keeps_the_machine_and_its_network(on_aws, say):
    more = say("and on 128 gpus?", on_aws).text
    assert "With 128 chips instead of 64" in more
    named = say("how long is a step on 8x p5.48xlarge?", on_aws).text
    assert "With 64 h100 chips instead of 64 a100-40gb chips" in named
    assert "With 128 h100 chips" in say("and on 128 gpus?", on_aws).text


@pytest.mark.slow
@pytest.mark.parametrize("text", ["what about p5.48xlarge-0?", "and on h100-0?", "how long on 2x p5.48xlarge-8"])
def test_hardware_that_cannot_be_is_answered_and_changes_nothing(on_aws, say, text):
    said = say(text, on_aws).text
    assert "step time" not in said
    assert "?" in said or "Nothing has changed" in said
