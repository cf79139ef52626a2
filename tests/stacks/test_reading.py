"""Stacks with a table, read from a file, a command and a log, up to the line to paste."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines, stack_of
from tests.experiments.stack_configurations import read

__all__ = ["read"]

LEVANTER = """
data: !include data/openwebtext.yaml
model: {type: llama, hidden_dim: 4096, intermediate_dim: 14336, num_heads: 32, num_kv_heads: 8, num_layers: 32,
  seq_len: 4096, reference_checkpoint: meta-llama/Llama-2-7b-hf}
trainer: {mp: "p=f32,c=bfloat16", train_batch_size: 256, per_device_parallelism: 2, model_axis_size: 2}
"""
NEOX = """{
  "pipe-parallel-size": 2, "model-parallel-size": 4, "num-layers": 32, "hidden-size": 4096, "num-attention-heads": 32,
  "seq-length": 2048, "pos-emb": "rotary", "no-weight-tying": true, "activation": "swiglu",
  "intermediate-size": 32768, "mlp_multiple_of": 256, "train_micro_batch_size_per_gpu": 4,
  "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 1}, "bf16": {"enabled": True},
  "attention-config": [[["flash"], 32]], "checkpoint-activations": true,
}"""
AUTOMODEL = """
recipe: TrainFinetuneRecipeForNextTokenPrediction
step_scheduler: {global_batch_size: 64, local_batch_size: 1}
model: {_target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained, torch_dtype: bfloat16,
  pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B}
distributed: {strategy: fsdp2, dp_size: none, ep_size: 8, activation_checkpointing: true}
dataset: {seq_length: 4096}
"""
OLMO = """ExperimentConfig(
    run_name='7B',
    model=TransformerConfig(d_model=4096, vocab_size=100352, n_layers=32,
        block=TransformerBlockConfig(sequence_mixer=AttentionConfig(n_heads=32, n_kv_heads=None),
            feed_forward=FeedForwardConfig(hidden_size=11008),
            name=<TransformerBlockType.reordered_norm: 'reordered_norm'>)),
    data_loader=NumpyDataLoaderConfig(global_batch_size=4194304),
    train_module=TransformerTrainModuleConfig(rank_microbatch_size=8192, max_sequence_length=4096,
        dp_config=TransformerDataParallelConfig(name=<DataParallelType.hsdp: 'hsdp'>,
            param_dtype=<DType.bfloat16: 'bfloat16'>, num_replicas=None, shard_degree=32)),
)
[step=10/900,epoch=1]
    throughput/device/TPS=15,500
"""


def line(run, plan: str) -> str:
    stack = stack_of(run.workload.framework)
    batch, length = run.workload.global_batch, run.workload.sequence_length
    return launch_lines(Plan.parse(plan), stack, run.hyperparameters, global_batch=batch, sequence=length)


def test_levanter_by_file_and_by_command(read, tmp_path):
    run = read("7b.yaml", LEVANTER, hardware="v5p-128")
    assert str(run.plan) == "data=32 model=2 microbatches=4 remat=full"
    assert (run.workload.precision, run.workload.weight_precision, run.model.vocab) == ("bf16", "fp32", 32000)
    assert line(run, "data=64 microbatches=2 remat=none") == (
        "--trainer.model_axis_size 1 --model.gradient_checkpointing false"
    )
    (tmp_path / "7b.yaml").write_text(LEVANTER)
    command = "python -m levanter.main.train_lm --config_path 7b.yaml --trainer.per_device_parallelism 4\n"
    assert read("run.sh", command, hardware="v5p-128").plan.microbatches == 2


def test_gpt_neox_with_dashes(read):
    run = read("7b.yml", NEOX, hardware="a100-64")
    assert str(run.plan) == "replica=8 model=4 stage=2 microbatches=8 remat=full"
    assert (run.workload.global_batch, run.workload.zero_stage, run.workload.attention) == (256, 1, "flash")
    assert (run.model.d_ff, run.model.gated_mlp, run.model.vocab) == (11008, True, 50688)
    assert line(run, "data=32 model=2 microbatches=8 remat=full").splitlines() == [
        "model_parallel_size: 2",
        "pipe_parallel_size: 1",
        "train_micro_batch_size_per_gpu: 1",
        "zero_optimization: {stage: 3}",
    ]


def test_a_vocabulary_that_is_asked_for_is_laid_over_the_shapes(read):
    bare = read("7b.yaml", LEVANTER.replace("reference_checkpoint: meta-llama/Llama-2-7b-hf", "use_bias: false"))
    assert any("add model.vocab=N" in note for note in bare.notes)
    told = read("7b.yaml", LEVANTER, "model.vocab=50257", "model.num_layers=16", hardware="v5p-128")
    assert (told.model.vocab, told.model.layers) == (50257, 16)
    unsaid = NEOX.replace('"pos-emb"', '"tokenizer_type": "HFTokenizer", "pos-emb"')
    assert any("add model.vocab=N" in note for note in read("7b.yml", unsaid, hardware="a100-64").notes)
    run = read("7b.yml", unsaid, "model.vocab=32000", hardware="a100-64")
    assert (run.model.layers, run.model.vocab, run.model.missing()) == (32, 32000, ())
    assert not any("model.vocab" in note for note in run.notes)


def test_experts_of_nemo_automodel_lie_over_data_parallelism(read):
    run = read("moe.yaml", AUTOMODEL, hardware="h100-16")
    assert str(run.plan) == "data=2 expert=8 microbatches=4 remat=full"
    assert line(run, "data=4 expert=4 microbatches=2") == (
        "--distributed.ep_size=4 --step_scheduler.local_batch_size=2"
    )
    with pytest.raises(ConfigError, match="adapters, which is not modelled"):
        read("lora.yaml", f"{AUTOMODEL}peft: {{_target_: nemo_automodel.components._peft.lora.PeftConfig}}\n")


def test_olmo_core_by_what_its_log_prints(read):
    run = read("train.log", OLMO, hardware="h100-128")
    assert str(run.plan) == "replica=4 data=32 microbatches=4 remat=none"
    assert (run.workload.global_batch, run.workload.sequence_length, run.model.qk_norm) == (1024, 4096, True)
    assert line(run, "replica=2 data=64 microbatches=2") == (
        "--train_module.dp_config.num_replicas=2 --train_module.dp_config.shard_degree=64"
        " --train_module.rank_microbatch_size=16384"
    )


def test_settings_that_nobody_has_are_told(read):
    run = read("7b.yml", NEOX.replace('"pos-emb"', '"my-own-trick": 1, "pos-emb"'), hardware="a100-64")
    assert any(note.endswith("is not known: my_own_trick") for note in run.notes)


def test_gpt_neox_by_what_its_log_prints(read):
    printed = {
        "pipe_parallel_size": 2, "model_parallel_size": 4, "num_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "seq_length": 2048, "train_micro_batch_size_per_gpu": 4, "train_batch_size": 256,
        "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 1}, "fp16": {"enabled": True},
        "attention_config": ["flash"] * 32, "checkpoint_activations": True, "padded_vocab_size": 50688,
        "optimizer": {"type": "Adam"}, "user_script": "train.py",
    }  # fmt: skip
    lines = [f"  {name} {'.' * (32 - len(name))} {value}.....updated" for name, value in printed.items()]
    log = ["-------------------- arguments --------------------", *lines, "------- end of arguments -------", ""]
    run = read("train.log", "\n".join(log), hardware="a100-64")
    assert str(run.plan) == "replica=8 model=4 stage=2 microbatches=8 remat=full"
    assert (run.workload.framework, run.workload.precision, run.model.vocab) == ("GPT-NeoX", "fp16", 50688)
    cut = read("cut.log", "\n".join(log[:8]), hardware="a100-64")
    assert (cut.plan.degree("model"), cut.plan.degree("stage"), cut.plan.microbatches) == (4, 2, None)


def test_a_degree_that_a_variable_decides_is_asked(read, tmp_path):
    (tmp_path / "7b.yaml").write_text(LEVANTER)
    start = "python -m levanter.main.train_lm --config_path 7b.yaml"
    run = read("run.sh", f"{start} --trainer.model_axis_size $TP\n", hardware="v5p-128")
    assert run.plan is None
    assert any("it hangs on trainer.model_axis_size; add as key=value" in note for note in run.notes)
    told = read("run.sh", f"{start} --trainer.model_axis_size $TP\n", "trainer.model_axis_size=4", hardware="v5p-128")
    assert told.plan.degree("model") == 4
    batch = read("run.sh", f"{start} --trainer.train_batch_size $B\n", hardware="v5p-128")
    assert (batch.workload.global_batch, batch.plan.microbatches) == (None, None)


def test_a_file_of_two_stacks_is_asked_and_then_told(read):
    both = "pipe_parallel_size: 1\nmodel_parallel_size: 2\ntrainer: {mp: f32, fsdp_axis: embed}\nmodel: {type: llama}\n"
    with pytest.raises(ConfigError, match="has settings of GPT-NeoX and of Levanter"):
        read("both.yml", both, hardware="a100-8")
    assert read("both.yml", both, "stack=Levanter", hardware="a100-8").workload.framework == "Levanter"
