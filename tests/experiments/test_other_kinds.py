"""Models that are no decoder with attention, by the names that runs give them."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import read

__all__ = ["read"]

TRAINER = "torchrun --nproc_per_node 8 train.py --bf16 true --per_device_train_batch_size 1 --fsdp full_shard"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("state-spaces/mamba2-1.3b", "state-space or recurrent layers"),
        ("/data/weights/Falcon-H1-1.5B-Base/", "state-space or recurrent layers"),
        ("rwkv-6-world-3b", "state-space or recurrent layers"),
        ("google/flan-t5-xxl", "an encoder with a decoder"),
        ("FacebookAI/xlm-roberta-large", "an encoder, "),
        ("openai/whisper-medium", "a model of speech"),
        ("google/siglip-so400m", "a model of images"),
    ],
)
@pytest.mark.parametrize("command", [TRAINER + " --model_name_or_path {}", "base_model: {}\ndatasets: []\n"])
def test_it_is_refused_by_its_name(read, command, name, kind):
    file = "run.sh" if "torchrun" in command else "run.yaml"
    with pytest.raises(ConfigError, match=kind):
        read(file, command.format(name), hardware="h100-8")


@pytest.mark.parametrize(
    "name", ["/opt/mamba/envs/Llama-3.1-8B", "org/our-vitality-7b", "DeepSeek-R1-Distill-Llama-8B"]
)
def test_other_names_are_asked_for_or_known(read, name):
    assert read("run.sh", f"{TRAINER} --model_name_or_path {name}", hardware="h100-8").plan is not None


def test_a_model_that_is_said_counts(read):
    run = read("run.sh", f"{TRAINER} --model_name_or_path ours/mamba-lm", "model=qwen3-8b", hardware="h100-8")
    assert run.model.layers == 36


@pytest.mark.parametrize("name", ["llava-hf/llava-1.6-13b", "Acme/Acme-VL-8B", "google/paligemma2-10b"])
def test_what_reads_images_as_well_is_said_where_the_model_is_asked_for(read, name):
    notes = read("run.sh", f"{TRAINER} --model_name_or_path {name}", hardware="h100-8").notes
    for words in ("is not in the catalogue", "more than text"):
        assert any(words in note for note in notes)
