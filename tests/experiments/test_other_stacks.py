"""NeMo, Megatron-Bridge and torchtitan, and files of other stacks that are not read."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.experiments.files.yaml_text import parse_yaml
from asap.plans import Plan, Remat
from asap.stacks.launchers import inexpressible, launch_lines
from tests.experiments.stack_configurations import (
    BRIDGE,
    DEEPSPEED,
    LLAMA3_8B,
    MEGATRON,
    MIXTURE,
    NEMO,
    TITAN,
    read,
    size,
)

__all__ = ["read"]


def test_nemo(read):
    run = read("llama3.yaml", NEMO)
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "replica=4 model=4 stage=4 microbatches=64 pipeline_repeats=2 remat=selective"
    assert (run.workload.framework, run.workload.zero_stage, run.workload.precision) == ("NeMo", 1, "bf16")


def test_megatron_bridge(read):
    run = read("run_config.yaml", BRIDGE.replace("{_target_", "{is_hybrid_model: false, _target_"), hardware="h100-64")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "data=32 model=2 microbatches=4 remat=none"
    assert (run.workload.framework, run.workload.precision) == ("Megatron-Bridge", "fp8")


def test_a_model_of_megatron_bridge_that_holds_its_transformer_is_changed_there(read):
    values = parse_yaml(BRIDGE, "bridge")[0]
    own = {key: values["model"].pop(key) for key in ("_target_", "vocab_size", "seq_length")}
    held = values | {"model": own | {"is_hybrid_model": False, "transformer": values["model"]}}
    run, nested = read("run.yaml", BRIDGE, hardware="h100-64"), read("run.yaml", json.dumps(held), hardware="h100-64")
    assert (nested.plan, size(nested)) == (run.plan, size(run))
    line = launch_lines(Plan.parse("data=16 model=4 remat=full"), "bridge", nested.hyperparameters)
    for word in ("model.transformer.tensor_model_parallel_size=4", "model.transformer.recompute_granularity=full"):
        assert word in line.split()
    assert "model.tensor_model_parallel_size=4" in launch_lines(
        Plan.parse("data=16 model=4"), "bridge", run.hyperparameters
    )


def test_overlapped_experts_of_megatron_bridge_go_with_their_plan(read):
    experts = "num_moe_experts: 8, moe_router_topk: 2, expert_model_parallel_size: 8, hidden_size: 4096"
    overlap = "comm_overlap: {overlap_moe_expert_parallel_comm: true, delay_wgrad_compute: true}"
    run = read("run.yaml", BRIDGE.replace("hidden_size: 4096", experts, 1) + overlap, hardware="h100-64")
    line = launch_lines(Plan.parse("data=32 model=2"), "bridge", run.hyperparameters)
    for key in ("overlap_moe_expert_parallel_comm", "delay_wgrad_compute"):
        assert f"comm_overlap.{key}=false" in line
    assert inexpressible(Plan.parse("expert=8 stage=4 data=2"), "bridge", run.hyperparameters) is not None


def test_a_layout_of_megatron_bridge_lists_the_layers_of_each_part(read):
    parts = [["embedding", *["decoder"] * 4], *[["decoder"] * 4] * 6, [*["decoder"] * 4, "loss"]]
    stages = f"pipeline_model_parallel_size: 4, pipeline_model_parallel_layout: {json.dumps(parts)}"
    run = read("run.yaml", BRIDGE.replace("pipeline_model_parallel_size: 1", stages), hardware="h100-64")
    assert (run.plan.degree("stage"), run.plan.pipeline_repeats) == (4, 2)


def test_what_the_overrides_of_a_bridge_recipe_leave_to_it_is_unknown(read):
    run = read("override.yaml", "model: {seq_length: 2048}\ntrain: {global_batch_size: 64}", hardware="h100-64")
    assert (run.plan, run.workload.precision, run.workload.global_batch) == (None, None, 64)
    assert any("is laid over a recipe" in note for note in run.notes)
    named = "model: {seq_length: 2048}\ntrain: {global_batch_size: 64}\nmixed_precision: bf16_mixed"
    assert read("override.yaml", named, hardware="h100-64").workload.precision == "bf16"


@pytest.mark.parametrize(
    ("said", "remat"),
    [
        ("recompute_granularity: full", Remat.FULL),
        ("recompute_granularity: selective, recompute_modules: [core_attn]", Remat.SELECTIVE),
        ("recompute_granularity: selective", None),
        ("seq_length: 2048", None),
    ],
)
def test_recomputation_that_a_recipe_does_not_decide_is_known(read, said, remat):
    sizes = "tensor_model_parallel_size: 2, pipeline_model_parallel_size: 1, context_parallel_size: 1"
    run = read("override.yaml", f"model: {{{sizes}, {said}}}\ntrain: {{global_batch_size: 64}}", hardware="h100-64")
    assert run.plan.remat is remat
    shape = "{num_layers: 8, hidden_size: 512, num_attention_heads: 8, pipeline_model_parallel_size: 1}"
    smaller = read("override.yaml", f"model: {shape}\ntrain: {{global_batch_size: 64}}", hardware="h100-64")
    assert smaller.model is not None
    assert (smaller.model.layers, smaller.workload.precision) == (None, None)
    assert any("hidden_size, num_attention_heads, num_layers of the recipe's model" in n for n in smaller.notes)
    sizes = "tensor_model_parallel_size: 2, pipeline_model_parallel_size: 1, context_parallel_size: 1"
    said = read("override.yaml", f"model: {{{sizes}}}\ntrain: {{micro_batch_size: 1}}", hardware="h100-64")
    assert str(said.plan).startswith("replica=32 model=2")


def test_torchtitan(read):
    run = read("llama3_8b.toml", TITAN, hardware="h100-64")
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "replica=2 data=8 model=4 microbatches=1 remat=minimal"
    assert (run.workload.global_batch, run.workload.precision, run.workload.sequence_length) == (32, "fp8", 8192)
    changed = read("llama3_8b.toml", TITAN, "parallelism.tensor_parallel_degree=8", hardware="h100-64")
    assert str(changed.plan).startswith("replica=2 data=4 model=8")


def test_a_compiled_loss_alone_is_no_compiled_model(read):
    compiled = f"{TITAN}[compile]\nenable = true\n"
    assert read("llama3_8b.toml", compiled).workload.compiled is True
    assert read("llama3_8b.toml", f'{compiled}components = ["loss"]\n').workload.compiled is False


def test_torchtitan_by_an_entry_of_ones_own(read, tmp_path):
    (tmp_path / "llama3_8b.toml").write_text(TITAN)
    start = "torchrun --nproc_per_node=8 -m my_titan.entry --job.config_file llama3_8b.toml --training.seq_len 4096\n"
    run = read("train.sh", start)
    assert (run.hardware.devices, run.workload.sequence_length) == (8, 4096)


def test_without_hardware_that_is_said(read):
    run = read("llama3_8b.toml", TITAN)
    assert run.plan is None
    assert any("add --hardware" in note for note in run.notes)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("tune.yaml", "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\nbatch_size: 2", "torchtune recipe"),
        ("lev.yaml", "data: !include x.yaml\nmodel: {type: llama}\ntrainer:\n  mp: x", "trainer.mp must be one"),
        ("run.sh", "llamafactory-cli train a.yaml", "trains a.yaml, which is not there"),
        ("run.sh", "llamafactory-cli train a.yaml model_name_or_path=x cutoff_len=9", "a.yaml, which is not"),
        ("own.yaml", "model: {name: x}\ndataset: {a: 1}\nlora: {r: 8}\ntraining: {lr: 1}", "is no MaxText config"),
        ("nemo.yaml", "run: {name: x}\nmodel: {tensor_model_parallel_size: 8, checkpoint_path: y}", "is no MaxText"),
        ("run.sh", "python -m verl.trainer.main_ppo data.train_batch_size=8", "a script of verl"),
        ("film.yaml", "model: {num_layers: 8, crossattn_emb_size: 8}\ntrain: {train_iters: 1}", "a diffusion"),
        ("o.yaml", "model: {d_model: 8}\noptimizer: {}\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1",
         "an OLMo configuration"),
        ("m.yaml", "model: {name: mpt_causal_lm}\ntrain_loader: {name: text}", "a configuration of LLM Foundry"),
        ("b.yaml", "parallelism: {dp: 2, tp: 1, pp: 1}\ntokens: {}\nmodel: {n_layer: 2}", "has no model.model_config"),
        ("fuji.py", "from axlearn.common import config\n", "an AXLearn program"),
        ("fuji.txt", "model.klass: 'axlearn.common.causal_lm.Model'\n", "an AXLearn configuration"),
        ("recipe.py", "from nemo.collections import llm\n", "a NeMo 2 program, which is not read"),
        ("recipe.py", "from megatron.bridge.recipes import x\n", "a Megatron-Bridge program.*give run_config.yaml"),
        ("fit.yaml", "trainer: {strategy: {class_path: x}}\nmodel: {class_path: ours.LM}", "a program of Lightning"),
        ("nemo2.yaml", "trainer: {strategy: {tensor_model_parallel_size: 2}}\nmodel: {config: {}}", "a NeMo 2 recipe"),
        ("slurm.sh", "srun uv run python scripts/training/run_recipe.py --config_file x.yaml", "give run_config.yaml"),
        ("serve.yaml", "MODE: rl\nMODEL_ARGS: {--micro-batch-size: 1, --num-attention-heads: 8}", "no pre-training"),
        ("serve.sh", MEGATRON.replace("pretrain_gpt.py", "tools/run_text_generation_server.py"), "does not train"),
        ("values.yaml", "queue: a\nvolumes: {}\nworkload: {gpus: 8}", "values for a Helm chart.*helm template"),
        ("perf.yaml", "ConfigContainer: {train: {}}\nperf_matrix: {h100: {}}", "a table of Megatron-Bridge's"),
        ("eval.yaml", "model_name_or_path: x\nfinetuning_type: full\ndo_predict: true", "that does not train"),
        ("v1.yaml", "model: x\nmicro_batch_size: 1\ntrain_dataset: y", "a LLaMA-Factory configuration of version 1"),
        ("run.sh", "if [ -f a ]; then deepspeed train.py --deepspeed b.json\nfi", "under a condition"),
        ("asr.yaml", "name: asr\nmodel: {sample_rate: 16000}\ntrainer: {devices: 1}", "a NeMo configuration"),
        ("rl.toml", "[train]\noptm_lr = 1e-6\n[policy]\nmodel_name_or_path = 'x'", "is a cosmos-rl configuration"),
        ("rl.toml", "[trainer]\nx = 1\n[orchestrator]\nbatch_size = 8", "is a prime-rl configuration"),
        ("rl.yaml", "policy: {model_name: x}\ncluster: {num_nodes: 1}\ngrpo: {a: 1}", "is a NeMo-RL configuration"),
        ("veomni.yaml", "model: {model_path: x}\ntrain: {rmpad: true, micro_batch_size: 1}", "is a VeOmni config"),
        ("trn.yaml", "model_source: hf\ndistributed_strategy: {zero1: true}\ntrainer: {devices: 32}", "of NeuronX"),
        ("ibm.yml", "model_args: {model_class: x}\ntuning_args: {tuning_method: x}", "is a dolomite-engine"),
        ("rl.sh", f"{MIXTURE} --rollout-batch-size 32 --rm-type math", "is a script of slime"),
        ("rl.sh", "ray job submit -- python -m main_ppo algorithm.adv_estimator=gae data.x=1", "verl or OpenRLHF"),
        ("rl.sh", "python -m skyrl.train.main trainer.policy.model.path=x", "is a script of SkyRL"),
        ("own.py", "import jax\nimport optax\nmesh = jax.make_mesh((8,), ('x',))", "is a JAX program of its own"),
        ("own.py", "from trl import KTOTrainer\nKTOTrainer(model='x').train()", "a program of preferences or rewards"),
        ("own.py", "from vllm import LLM\nLLM(model='x').generate(['y'])", "is a program that generates text"),
        ("own.py", "import lightning as L\nL.Fabric(devices=8)", "is a program of Lightning"),
        ("tpu.sh", "python -m axlearn.common.launch_trainer_main --module=text.gpt", "is a script of AXLearn"),
        ("tpu.sh", "python -m levanter.main.train_lm --config_path a.yaml", "a.yaml, which is not there"),
        ("tpu.sh", "python ${T5X}/t5x/train.py --gin_file=a.gin", "is a script of T5X"),
        ("own.sh", "python ./deepy.py train.py configs/1-3B.yml", "1-3B.yml, which is not there"),
        ("own.sh", "mpirun -np 8 ./train_gpt2cu -b 64 -t 1024 -z 1", "is a script of llm.c"),
        ("rl.yaml", "algorithm: {adv_estimator: grpo}\nworker: {actor: {a: 1}}\ndata: {b: 1}", "an EasyR1 config"),
        ("serve.sh", "srun vllm serve some/model --tensor-parallel-size 8", "is a script that serves a model"),
        ("serve.sh", "python3 -m sglang.launch_server --model-path some/model --tp 8", "that serves a model"),
        ("trn.sh", "neuron_parallel_compile torchrun --nproc_per_node 32 run.py --tp 8", "for AWS Neuron"),
        ("alias.yaml", "model: &m {a: *m}\nother: *m", "aliases .* for themselves"),
        ("bert.sh", "python pretrain_bert.py --num-attention-heads 4 --micro-batch-size 2", "runs pretrain_bert.py"),
        ("flux.toml", '[model]\nname = "flux"\nflavor = "flux-dev"\n[training]\nsteps = 1', "only decoders"),
        ("other.toml", "[project]\nname = 'x'", "is not a torchtitan configuration"),
        ("broken.toml", "[model\n", "is not TOML"),
        ("train.sh", MEGATRON.replace("--num-layers 32", "--num-layers 1e99"), "num_layers must be a whole number"),
    ],
)  # fmt: skip
def test_what_is_not_read_says_so(read, name, text, said):
    with pytest.raises(ConfigError, match=said) as caught:
        read(name, text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("train.sh", MEGATRON.replace("--micro-batch-size", "--micro-batch-sise"), "micro_batch_size"),
        ("train.sh", MEGATRON.replace("--seq-length", "--seq-lenght"), "seq_length"),
        (
            "titan.toml",
            TITAN.replace("tensor_parallel_degree", "tensor_parallel_degre"),
            "parallelism.tensor_parallel_degree",
        ),
        ("ds.json", json.dumps(DEEPSPEED | {"sequence_paralel_size": 2}), "sequence_parallel_size"),
        (
            "run.yaml",
            "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 4096\nmicro_batch_size: 1\ncontext_paralel_size: 2\n",
            "context_parallel_size",
        ),
        (
            "run.yaml",
            "modules: {pre_trainer: {framework: megatron, model: llama3.1_8B.yaml, overrides: {global_batch_size: 64,"
            " expert_model_paralel_size: 4}}}",
            "expert_model_parallel_size",
        ),
    ],
)
def test_a_misspelt_setting_is_named(read, name, text, said):
    notes = read(name, text, hardware="h100-8" if name != "train.sh" else None).notes
    assert any(note.startswith("not read, as there is no such") and f"did you mean {said}?" in note for note in notes)


def test_a_script_that_trains_and_then_serves_is_read(read):
    assert read("run.sh", f"{MEGATRON}\nvllm serve out --tensor-parallel-size 8\n").plan is not None
