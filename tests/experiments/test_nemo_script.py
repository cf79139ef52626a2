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


def test_the_batch_of_tuning_is_that_of_its_data(read, tmp_path):
    (tmp_path / "gpt_sft.yaml").write_text(NEMO)
    start = "torchrun examples/nlp/gpt/train_gpt_sft.py trainer.num_nodes=2 model.pipeline_model_parallel_size=1"
    start += " +model.data.train_ds.global_batch_size=32 +model.data.train_ds.micro_batch_size=2"
    run = read("tune.sh", f"{start} model.virtual_pipeline_model_parallel_size=null\n")
    assert (run.workload.global_batch, str(run.plan)) == (32, "replica=4 model=4 microbatches=4 remat=selective")
    with pytest.raises(ConfigError, match="by its name trains by another method"):
        read("tune.sh", start.replace("gpt_sft", "gpt_sft_dpo").replace("train_gpt_sft_dpo", "megatron_gpt_dpo_sft"))


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
        ("=llama", "=$NAME", r"starts NeMo with conf/\$NAME.yaml, which a variable names \(add NAME="),
        ("gpt_pretraining", "gpt_eval", "by its name does not train"),
        ("=llama", "=speech", "describes no language model of NeMo"),
    ],
)
def test_what_is_not_read_is_refused_by_name(read, tmp_path, old, new, said):
    (tmp_path / "llama.yaml").write_text(NEMO)
    (tmp_path / "speech.yaml").write_text("trainer: {devices: 1}\nmodel: {sample_rate: 16000}\n")
    with pytest.raises(ConfigError, match=said):
        read("train.sh", START.replace(old, new))


@pytest.mark.parametrize(
    "start",
    [
        'srun --container-image x bash -c "cd /opt/NeMo; python {program}"',
        "read -r -d '' cmd <<EOF\ncd /opt/NeMo \\\n&& python {program}\nEOF\nsrun bash -c \"${{cmd}}\"",
    ],
)
def test_a_command_in_quotes_or_read_from_a_here_document(read, tmp_path, start):
    (tmp_path / "llama.yaml").write_text(NEMO)
    program = "megatron_gpt_pretraining.py \\\n  --config-name=llama \\\n  model.tensor_model_parallel_size=8"
    assert read("train.sh", start.format(program=program)).plan.degree("model") == 8


def test_without_a_name_it_is_the_configuration_of_the_program(read, tmp_path):
    text = "torchrun megatron_gpt_finetuning.py trainer.devices=8 model.tensor_model_parallel_size=2"
    with pytest.raises(ConfigError, match=r"starts NeMo with conf/megatron_gpt_finetuning_config.yaml, which is not"):
        read("sft.sh", text)
    (tmp_path / "megatron_gpt_finetuning_config.yaml").write_text(NEMO)
    run = read("sft.sh", f"{text} model.data.train_ds.max_seq_length=512", "trainer.num_nodes=8")
    assert (run.plan.degree("model"), run.workload.sequence_length) == (2, 512)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("  peft: {peft_scheme: lora}", "peft is lora: training a part of the parameters"),
        ("  dpo: {ref_policy_kl_penalty: 0.1}", "model.dpo: trains on preferences or rewards"),
        ("  kd_config: {kd_loss_scale: 1.0}", "model.kd_config: distils another model"),
        ("peft: {_target_: megatron.bridge.peft.lora.LoRA, dim: 8}", "peft is LoRA: training a part"),
    ],
)
def test_adapters_distillation_and_preferences_are_refused(read, more, said):
    with pytest.raises(ConfigError, match=said):
        read("run.yaml", f"{NEMO}{more}\n")


@pytest.mark.parametrize("more", ["  peft: {peft_scheme: null}", "  peft: {peft_scheme: none}", "peft: null"])
def test_a_scheme_of_none_trains_all_parameters(read, more):
    assert read("run.yaml", f"{NEMO}{more}\n").plan.degree("model") == 4
