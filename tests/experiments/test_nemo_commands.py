"""Recipes of NeMo 2 by their command, NeMo's launcher, and archives."""

import pytest

from asap.core.errors import ConfigError, UnreadError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import NEMO, read

__all__ = ["read"]

COMMAND = """
: "${NODES:=2}"
ARGS=(
    --factory "mixtral_8x7b(name='x', num_nodes=$NODES, num_gpus_per_node=8)"
    trainer.strategy.tensor_model_parallel_size=1 trainer.strategy.pipeline_model_parallel_size=4
    trainer.strategy.virtual_pipeline_model_parallel_size=8 trainer.strategy.context_parallel_size=1
    trainer.strategy.expert_model_parallel_size=4
    data.global_batch_size=64 data.micro_batch_size=1 data.seq_length=4096 trainer.max_steps=20
)
nemo llm pretrain "${ARGS[@]}" -y
"""


def test_a_recipe_that_a_command_starts(read):
    run = read("run.sh", COMMAND)
    assert (run.model.experts, run.hardware.devices) == (8, 16)
    assert run.plan.degree("stage") == 4
    assert run.plan.degree("expert") == 4
    assert run.plan.pipeline_repeats == 8
    with pytest.raises(ConfigError, match="factory of nothing"):
        read("run.sh", "nemo llm pretrain trainer.max_steps=2\n")


def test_plans_are_written_back_as_words_of_the_command(read):
    command = read("run.sh", COMMAND)
    plan = Plan.parse("replica=4 expert=4 microbatches=2")
    words = launch_lines(plan, "nemo", command.hyperparameters, global_batch=64, layers=32).split()
    assert "trainer.strategy.pipeline_model_parallel_size=1" in words
    assert "data.micro_batch_size=2" in words


@pytest.mark.parametrize("library", ["nemo.collections import llm", "megatron.bridge.training import pretrain"])
def test_a_program_is_refused_with_what_prints_its_settings(read, library):
    with pytest.raises(UnreadError, match="program, which is not read") as caught:
        read("train.py", f"from {library}\n")
    assert "asap resolve -- python" in (caught.value.hint or "")


def test_the_launcher_of_nemo_names_its_configuration(read, tmp_path):
    start = (
        "python3 $ROOT/main.py stages=[training] training=llama/small training.trainer.num_nodes=2 base_results_dir=x"
    )
    with pytest.raises(ConfigError, match=r"conf/training/llama/small\.yaml, which is not there") as error:
        read("run.sh", start)
    assert "trainer.num_nodes=2" in (error.value.hint or "")
    (tmp_path / "conf" / "training" / "llama").mkdir(parents=True)
    (tmp_path / "conf" / "training" / "llama" / "small.yaml").write_text(NEMO)
    run = read("run.sh", f"{start} training.model.tensor_model_parallel_size=2")
    assert (run.hardware.devices, run.plan.degree("model")) == (16, 2)
    (tmp_path / "launcher_scripts").mkdir()
    (tmp_path / "conf").rename(tmp_path / "launcher_scripts" / "conf")
    assert read("run.sh", start).model.layers == run.model.layers


def test_the_launcher_of_nemo_tunes(read, tmp_path):
    (tmp_path / "conf" / "peft").mkdir(parents=True)
    tuned = NEMO.replace("encoder_seq_length: 8192", "encoder_seq_length: ${peft.model.data.train_ds.max_seq_length}")
    tuned = tuned.replace("distributed_optim}", "distributed_optim, grad_sync_dtype: bf16}")
    tuned += "  peft:\n    peft_scheme: null\n  data:\n    train_ds:\n      max_seq_length: 1024\n"
    (tmp_path / "conf" / "peft" / "sft.yaml").write_text(tuned)
    start = "python3 $ROOT/main.py training=other peft=sft stages=[peft] training.trainer.num_nodes=4"
    start += " peft.trainer.num_nodes=2"
    run = read("run.sh", start)
    assert (run.hardware.devices, run.workload.sequence_length, run.model.layers) == (16, 1024, 32)
    assert run.workload.gradient_precision == "bf16"
    assert not any("not resolved" in note for note in run.notes)
    with pytest.raises(ConfigError, match="peft is lora"):
        read("run.sh", f"{start} peft.model.peft.peft_scheme=lora")


def test_an_architecture_inside_an_archive_is_asked_for(read):
    tuned = "\n".join(line for line in NEMO.splitlines() if not line.strip().startswith(("num_", "hidden", "ffn")))
    tuned = tuned.replace("\nmodel:\n", "\nmodel:\n  restore_from_path: /m/base-8b.nemo\n")
    notes = read(
        "tune.yaml", tuned + "\n  hidden_size: 64\n".replace("  hidden_size: 64\n", ""), hardware="h100-64"
    ).notes
    assert "the architecture is inside /m/base-8b.nemo, which is not opened" in notes
    assert any("model=NAME" in note for note in notes)
