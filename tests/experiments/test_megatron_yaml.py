"""Megatron-LM's own YAML, by itself and named by ``--yaml-cfg``; what forks call otherwise or add."""

import pytest
import yaml

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import MEGATRON, read

__all__ = ["read"]

OWN = """
language_model:
  num_layers: 24
  hidden_size: 2048
  ffn_hidden_size: 5632
  num_attention_heads: 16
  num_query_groups: 4
  gated_linear_unit: False
  activation_func: swiglu
  num_moe_experts: null
  recompute_granularity: selective
model_parallel:
  tensor_model_parallel_size: 2
  pipeline_model_parallel_size: 4
  virtual_pipeline_model_parallel_size: 9
  sequence_parallel: True
  bf16: True
micro_batch_size: 1
global_batch_size: 96
num_layers_per_virtual_pipeline_stage: 3
seq_length: 4096
max_position_embeddings: 4096
position_embedding_type: rope
untie_embeddings_and_output_weights: True
use_distributed_optimizer: True
vocab_size: 50000
"""
FORKS_MIXTURE = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 12 --hidden-size 2048 --num-attention-heads 16"
    " --ffn-hidden-size 8192 --multi-head-latent-attention --q-lora-rank 768 --kv-lora-rank 512 --qk-nope-head-dim 64"
    " --qk-rope-head-dim 32 --v-head-dim 64 --num-experts 32 --moe-router-topk 4 --moe-intermediate-size 1024"
    " --n-shared-experts 2 --first-k-dense-replace 1 --moe-layer-freq 1 --seq-length 2048 --swiglu --bf16"
    " --max-position-embeddings 2048 --vocab-size 64000 --micro-batch-size 1 --global-batch-size 32"
    " --tensor-model-parallel-size 1 --pipeline-model-parallel-size 1 --expert-model-parallel-size 8"
)


def test_megatrons_own_yaml_is_read(read):
    run = read("gpt.yaml", OWN, hardware="h100-16")
    model, work = run.model, run.workload
    assert (model.layers, model.d_model, model.d_ff, model.kv_heads, model.gated_mlp) == (24, 2048, 5632, 4, True)
    assert str(run.plan) == "replica=2 model=2 stage=4 microbatches=48 pipeline_repeats=2 remat=selective"
    assert (work.precision, work.sequence_length, work.zero_stage, work.sequence_parallel) == ("bf16", 4096, 1, True)


def test_a_script_that_names_it_takes_nothing_else_from_its_command(read, tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "gpt.yaml").write_text(OWN)
    start = "torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py --yaml-cfg $ROOT/conf/gpt.yaml --num-layers 2"
    run = read("run.sh", start)
    assert (run.hardware.devices, run.model.layers, run.plan.degree("replica")) == (32, 24, 4)
    with pytest.raises(ConfigError, match=r"other\.yaml, which is not there"):
        read("run.sh", start.replace("gpt.yaml", "other.yaml"))


def test_a_plan_is_written_back_below_its_sections(read):
    run = read("gpt.yaml", OWN.replace("_stage: 3", "_stage: null"), hardware="h100-16")
    plan = Plan.parse("replica=1 seq=2 model=2 stage=4 microbatches=48 pipeline_repeats=2 remat=none")
    lines = launch_lines(plan, "megatron", run.hyperparameters, global_batch=96, layers=24)
    assert yaml.safe_load(lines) == {
        "model_parallel": {"context_parallel_size": 2},
        "micro_batch_size": 2,
        "num_layers_per_virtual_pipeline_stage": 3,
        "language_model": {"recompute_granularity": None},
    }


def test_a_mixture_of_experts_in_the_words_of_a_fork(read):
    model = read("train.sh", FORKS_MIXTURE).model
    assert (model.q_lora_rank, model.kv_lora_rank, model.qk_nope_head_dim, model.qk_rope_head_dim) == (768, 512, 64, 32)
    assert (model.experts, model.expert_d_ff, model.shared_experts, model.leading_dense_layers) == (32, 1024, 2, 1)


def test_gates_and_windows_in_the_words_of_a_fork(read):
    said = MEGATRON.replace("--swiglu", "--gelu-tanh --interleave-sliding-window 4096")
    model = read("train.sh", said).model
    assert (model.gated_mlp, model.sliding_window, model.global_layer_every) == (True, 4096, 2)
    everywhere = read("train.sh", MEGATRON.replace("--swiglu", "--geglu --sliding-window 1024")).model
    assert (everywhere.gated_mlp, everywhere.sliding_window, everywhere.global_layer_every) == (True, 1024, None)


def test_a_forks_own_recomputation_is_unknown_and_what_decides_the_model_is_named_first(read):
    own = MEGATRON.replace(" --recompute-granularity full", " --fancy-logs --swap-attention --dense-warmup-layers 2")
    run = read("train.sh", own)
    assert run.plan is not None
    assert run.plan.remat is None
    note = next(note for note in run.notes if "no Megatron-LM has" in note)
    assert note.index("--swap-attention") < note.index("--fancy-logs")
    assert note.index("--dense-warmup-layers") < note.index("--fancy-logs")
    assert read("train.sh", MEGATRON.replace("--bf16", "--bf16 --swap-attention")).plan.remat.value == "full"


@pytest.mark.parametrize("said", ["--prompts: hello", "--num-tokens-to-generate: 30", "--prompt-file: p.txt"])
def test_arguments_of_generating_text_are_no_training(read, said):
    sizes = "  --num-layers: 24\n  --hidden-size: 64\n  --num-attention-heads: 4\n  --micro-batch-size: 1\n"
    text = f"MODEL_ARGS:\n{sizes}  {said}\n"
    with pytest.raises(ConfigError, match="an argument of generating text, which does not train"):
        read("model_config.yaml", text)
    with pytest.raises(ConfigError, match="an argument of generating text"):
        read("run.sh", MEGATRON.replace("--bf16", f"--bf16 {said.replace(':', '')}"))


@pytest.mark.parametrize(
    "source", ["/opt/conda/etc/profile.d/conda.sh", "$HOME/.venv/bin/activate", "/etc/profile.d/modules.sh"]
)
def test_environments_of_software_have_no_arguments(read, source):
    script = MEGATRON.replace("--recompute-granularity full", "$EXTRA").replace(
        "export NCCL", f"source {source}\nexport NCCL"
    )
    run = read("train.sh", script, hardware="h100-64")
    assert (str(run.plan.remat), run.workload.precision) == ("none", "bf16")
    assert not any("not followed" in note for note in run.notes)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("pretrain_gpt.py --kd --num-layers-teacher 48", "--kd is an argument of learning from another model"),
        ("posttrain_gpt.py --stage dpo", "--stage dpo compares answers"),
        ("posttrain_gpt.py --stage sft --lora-r 8", "--lora-r is an argument of adapters"),
        ("examples/mimo/train.py", "only decoders"),
        ("-m examples.inference.offline_inference", "runs examples.inference.offline_inference, which does not train"),
        ("tools/retro/main.py", "does not train"),
    ],
)
def test_what_trains_otherwise_or_not_at_all_is_refused(read, program, said):
    with pytest.raises(ConfigError, match=said):
        read("run.sh", MEGATRON.replace("pretrain_gpt.py", program))


def test_a_stage_that_trains_all_on_tokens_is_read(read):
    start = MEGATRON.replace("pretrain_gpt.py", "posttrain_gpt.py --stage sft")
    assert read("run.sh", start, hardware="h100-64").model.layers == 32


def test_types_of_the_optimizers_state_by_the_names_of_torch(read):
    text = """
model: {num_layers: 4, hidden_size: 512, num_attention_heads: 8, seq_length: 1024, tensor_model_parallel_size: 1}
train: {global_batch_size: 16, micro_batch_size: 1}
mixed_precision: bf16_mixed
optimizer: {use_precision_aware_optimizer: true, exp_avg_dtype: torch.bfloat16, main_grads_dtype: torch.bfloat16,
  exp_avg_sq_dtype: {_target_: torch.uint8}, optimizer_cpu_offload: true, optimizer_offload_fraction: 0.25}
"""
    run = read("run_config.yaml", text, hardware="h100-8")
    work = run.workload
    assert (work.first_moment_precision, work.second_moment_precision) == ("bf16", "fp8")
    assert work.gradient_precision == "bf16"
    assert any("does not use optimizer_offload_fraction=0.25" in note for note in run.notes)
