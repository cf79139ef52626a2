"""Scripts that start NeMo with a YAML and settings in Hydra's grammar."""

import pytest

from asap.core.errors import ConfigError
from tests.experiments.stack_configurations import NEMO, read

__all__ = ["read"]

START = """
NODES=${NODES:-4}
srun python /opt/NeMo/examples/nlp/language_modeling/megatron_gpt_pretraining.py --config-path=conf \\
    --config-name=llama ++trainer.num_nodes=$NODES model.micro_batch_size=2 model.data.data_prefix=[1.0,$DATA]
"""


def test_the_yaml_with_the_settings_of_the_command(read, tmp_path):
    (tmp_path / "llama.yaml").write_text(NEMO)
    run = read("train.sh", START)
    assert (str(run.plan), run.hardware.devices, run.workload.framework) == (
        "replica=2 model=4 stage=4 microbatches=64 pipeline_repeats=2 remat=selective",
        32,
        "NeMo",
    )
    changed = read("train.sh", START, "model.tensor_model_parallel_size=8", "model.vocab=64000")
    assert (changed.plan.degree("model"), changed.model.vocab) == (8, 64_000)


def test_what_a_variable_decides_is_unknown(read, tmp_path):
    (tmp_path / "llama.yaml").write_text(NEMO)
    text = START.replace("model.micro_batch_size=2", "model.tensor_model_parallel_size=$TP model.global_batch_size=$B")
    run = read("train.sh", text)
    assert (run.plan, run.workload.global_batch) == (None, None)
    assert any("model.global_batch_size, model.tensor_model_parallel_size" in note for note in run.notes)
    assert read("train.sh", text, "model.tensor_model_parallel_size=4", hardware="h100-32").plan.degree("model") == 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("=llama", "=other", "starts NeMo with conf/other.yaml, which is not there"),
        ("=llama", "=$NAME", r"starts NeMo with conf/\$NAME.yaml, which is not there"),
        ("gpt_pretraining", "gpt_eval", "by its name does not train"),
        ("=llama", "=speech", "describes no language model of NeMo"),
    ],
)
def test_what_is_not_read_is_refused_by_name(read, tmp_path, old, new, said):
    (tmp_path / "llama.yaml").write_text(NEMO)
    (tmp_path / "speech.yaml").write_text("trainer: {devices: 1}\nmodel: {sample_rate: 16000}\n")
    with pytest.raises(ConfigError, match=said):
        read("train.sh", START.replace(old, new))
