"""Scripts and argument files of Megatron-LM, and what NeMo and torchtitan say in other words."""

import json

import pytest

from asap.core.errors import ConfigError
from asap.plans import Plan
from asap.stacks.launchers import launch_lines
from tests.experiments.stack_configurations import (
    LLAMA3_8B,
    MEGATRON,
    NEMO,
    TITAN,
    read,
    size,
)

__all__ = ["read"]


def test_a_megatron_script(read):
    run = read("train.sh", MEGATRON)
    assert size(run) == pytest.approx(LLAMA3_8B, rel=0.01)
    assert str(run.plan) == "replica=8 model=4 stage=2 microbatches=16 remat=full"
    assert run.hardware.devices == 64
    work = run.workload
    assert (work.global_batch, work.sequence_length, work.precision) == (256, 8192, "bf16")
    assert (work.zero_stage, work.sequence_parallel, work.framework) == (1, True, "Megatron-Core")
    assert run.environment == {"NCCL_IB_TIMEOUT": "19"}
    assert run.provenance["model.layers"] == "train.sh:9: num_layers"


@pytest.mark.parametrize(
    ("more", "precision"),
    [
        ("", "fp32"),
        ("--grad-reduce-in-bf16", "bf16"),
        ("--use-precision-aware-optimizer --main-grads-dtype bf16", "bf16"),
        ("--accumulate-allreduce-grads-in-fp32", "fp32"),
        ("--megatron-fsdp-grad-comm-dtype bf16", "fp32"),
        ("--use-megatron-fsdp --megatron-fsdp-grad-comm-dtype bf16", "bf16"),
        ("--use-megatron-fsdp --megatron-fsdp-main-grads-dtype bf16", "bf16"),
    ],
)
def test_gradients_of_megatron_are_fp32_unless_told_otherwise(read, more, precision):
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {more}"))
    assert run.workload.gradient_precision == precision


def test_said_hardware_and_overrides_win_over_the_script(read):
    run = read("train.sh", MEGATRON, "tensor_model_parallel_size=8", "workload.optimizer=sgd", hardware="h100-128")
    assert str(run.plan) == "replica=8 model=8 stage=2 microbatches=16 remat=full"
    assert run.workload.optimizer == "sgd"
    assert "the script starts 64 ranks; the plan is for the 128 devices that were said" in run.notes


def test_a_branch_that_the_script_decides_is_taken(read):
    sharded = read("train.sh", MEGATRON.replace("${FSDP:-0}", "1"))
    assert str(sharded.plan).startswith("data=8 model=4")
    assert sharded.workload.zero_stage == 3


def test_a_branch_that_it_does_not_decide_is_left_out_and_named(read):
    run = read("train.sh", MEGATRON.replace('"$FSDP" == "1"', '"$(hostname)" == "a"'))
    assert run.workload.zero_stage is None
    assert any("--use-distributed-optimizer (line" in note and "under conditions" in note for note in run.notes)


def test_only_what_the_command_is_given_is_read(read):
    small = "SMALL_ARGS=(\n  --num-layers 2 --hidden-size 64 --tensor-model-parallel-size 1\n)\ntorchrun"
    assert size(read("train.sh", MEGATRON.replace("torchrun", small))) == pytest.approx(LLAMA3_8B, rel=0.01)
    twice = MEGATRON + "python pretrain_gpt.py --num-layers 2 --micro-batch-size 1 --num-attention-heads 2\n"
    assert "train.sh starts 2 runs; the one of line 20 is read" in read("train.sh", twice).notes


def test_a_sourced_file_beside_it_is_followed_and_another_leaves_precision_unknown(read, tmp_path):
    script = (
        MEGATRON.replace("--bf16", "")
        .replace("TP=", "source ./common.sh\nTP=")
        .replace("pretrain_gpt.py", "pretrain_gpt.py ${EXTRA[@]}")
    )
    run = read("train.sh", script)
    assert run.workload.precision is None
    (tmp_path / "common.sh").write_text("EXTRA=(\n    --fp16\n)\n")
    assert read("train.sh", script).workload.precision == "fp16"


def test_arguments_in_json_and_in_a_test_case(read):
    values = {
        "num_layers": 12, "hidden_size": 512, "num_attention_heads": 8, "micro_batch_size": 4, "world_size": 8,
        "tensor_model_parallel_size": 2, "global_batch_size": 32, "seq_length": 1024,
    }  # fmt: skip
    assert str(read("args.json", json.dumps(values)).plan) == "replica=4 model=2 microbatches=2 remat=none"
    block = {"MODEL_ARGS": {f"--{key.replace('_', '-')}": value for key, value in values.items()}}
    assert str(read("model_config.json", json.dumps(block)).plan) == "replica=4 model=2 microbatches=2 remat=none"


@pytest.mark.parametrize(
    ("pattern", "layers"),
    [("[0]*2+[1]*30", 30), ("'([0]*2+[1]*30)'", 30), ("'([0,1]*16)'", 16), ("[[0]*4+[0,0,1,0]*7]", 7), ("2", 16)],
)
def test_layers_with_experts_as_megatron_writes_them(read, pattern, layers):
    moe = f"--bf16 --num-experts 64 --moe-ffn-hidden-size 1024 --moe-layer-freq {pattern}"
    assert read("train.sh", MEGATRON.replace("--bf16", moe)).model.moe_layers == layers


def test_rotary_positions_by_their_old_name_and_one_expert_are_a_plain_decoder(read):
    before = "--position-embedding-type rope"
    run = read("run.sh", MEGATRON.replace(before, "--use-rotary-position-embeddings --num-experts 1"))
    assert run.model == read("run.sh", MEGATRON).model
    assert (run.model.learned_positions, run.model.experts) == (0, 0)


def test_experts_as_megatron_lays_them(read):
    moe = MEGATRON.replace("--bf16", "--bf16 --num-experts 64 --moe-ffn-hidden-size 1024 --moe-layer-freq [0]*2+[1]*30")
    moe = moe.replace("--bf16", "--bf16 --expert-model-parallel-size 8")
    run = read("moe.sh", moe)
    assert run.model is not None
    assert (run.model.experts, run.model.leading_dense_layers, run.model.expert_d_ff) == (64, 2, 1024)
    assert str(run.plan) == "model=4 expert=8 stage=2 microbatches=16 remat=full"
    whole = read("moe.sh", moe.replace("--bf16", "--bf16 --expert-tensor-parallel-size 1"))
    assert str(whole.plan) == "replica=4 model=4 expert=2 stage=2 microbatches=16 remat=full"
    assert whole.workload.experts_over == ("model", "seq")
    assert any("experts lie over 8 devices, here expert=2 x model=4" in note for note in whole.notes)
    folded = read("moe.sh", moe.replace("--bf16", "--bf16 --context-parallel-size 2"))
    assert str(folded.plan) == "seq=2 model=4 expert=4 stage=2 microbatches=32 remat=full"
    assert any("experts lie over 8 devices, here expert=4 x seq=2" in note for note in folded.notes)


@pytest.mark.parametrize(
    ("said", "kind"),
    [("", "ring"), ("--cp-comm-type a2a", "ulysses"), ("--cp-comm-type all_gather p2p", "all_gather")],
)
def test_the_way_of_context_parallelism_as_megatron_says_it(read, said, kind):
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 --context-parallel-size 2 {said}"))
    assert run.workload.context_parallel == kind
    assert read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {said}")).workload.context_parallel is None


def test_a_way_of_context_parallelism_that_megatron_does_not_have_is_refused(read):
    with pytest.raises(ConfigError, match="cp_comm_type must be one of p2p"):
        read("train.sh", MEGATRON.replace("--bf16", "--bf16 --context-parallel-size 2 --cp-comm-type nccl"))


def test_the_way_of_context_parallelism_in_yaml_and_toml(read):
    nemo = NEMO.replace("sequence_parallel: true", "context_parallel_size: 2\n  cp_comm_type: a2a+p2p")
    run = read("llama3.yaml", nemo)
    assert run.workload.context_parallel == "ring"
    assert any("cp_comm_type a2a+p2p" in note for note in run.notes)
    degree = "parallelism.context_parallel_degree=2"
    titan = read("llama3_8b.toml", TITAN, degree, hardware="h100-64")
    assert titan.workload.context_parallel == "all_gather"
    rotated = read(
        "llama3_8b.toml", TITAN, degree, "parallelism.context_parallel_rotate_method=alltoall", hardware="h100-64"
    )
    assert rotated.workload.context_parallel == "ring"


def test_experts_that_are_padded_to_their_capacity(read):
    factor = "--num-experts 64 --moe-ffn-hidden-size 1024 --moe-expert-capacity-factor"
    dropping = MEGATRON.replace("--bf16", f"--bf16 {factor} 1.5")
    assert read("moe.sh", dropping).workload.capacity_factor is None
    padded = dropping.replace("1.5", "1.5 --moe-pad-expert-input-to-capacity")
    assert read("moe.sh", padded).workload.capacity_factor == 1.5
    with pytest.raises(ConfigError, match="moe_expert_capacity_factor must be a number above zero"):
        read("moe.sh", padded.replace("1.5", "-1"))


@pytest.mark.parametrize(
    ("said", "graphs", "modules"),
    [
        ("", None, ()), ("--cuda-graph-impl none", "none", ()), ("--cuda-graph-impl local", "layer", ()),
        ("--cuda-graph-impl full_iteration", "step", ()),
        ("--enable-cuda-graph --cuda-graph-scope full_iteration", "step", ()),
        ("--external-cuda-graph", "layer", ()),
        ("--cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp", "layer", ()),
        ("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router", "module", ("attn", "moe_router")),
    ],
)  # fmt: skip
def test_cuda_graphs_as_megatron_says_them(read, said, graphs, modules):
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {said}"))
    assert (run.workload.cuda_graphs, run.workload.graph_modules) == (graphs, modules)


def test_all_to_alls_beside_compute_as_megatron_says_them(read):
    experts = "--num-experts 64 --moe-ffn-hidden-size 1024"
    assert read("moe.sh", MEGATRON.replace("--bf16", f"--bf16 {experts}")).workload.overlaps_experts is None
    said = f"--bf16 {experts} --overlap-moe-expert-parallel-comm"
    assert read("moe.sh", MEGATRON.replace("--bf16", said)).workload.overlaps_experts is True


def test_cuda_graphs_in_yaml_and_unknown_ones(read):
    nemo = NEMO.replace("sequence_parallel: true", "enable_cuda_graph: true\n  cuda_graph_scope: full_iteration")
    assert read("llama3.yaml", nemo).workload.cuda_graphs == "step"
    with pytest.raises(ConfigError, match="cuda_graph_impl must be one of none, local"):
        read("train.sh", MEGATRON.replace("--bf16", "--bf16 --cuda-graph-impl nccl"))


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("TP=$(cat tp)", "the plan is unknown: it hangs on tensor_model_parallel_size"),
        ("if grep a b; then MODEL_ARGS+=(--context-parallel-size 2); fi", "it hangs on context_parallel_size"),
        ("if grep a b; then MODEL_ARGS+=(--qk-layernorm); fi", "the model is unknown: it hangs on qk_layernorm"),
    ],
)
def test_what_hangs_on_an_undecided_argument_is_unknown(read, line, note):
    run = read("run.sh", MEGATRON.replace("torchrun", f"{line}\ntorchrun"))
    assert any(note in said for said in run.notes)
    assert run.plan is None or run.model is None or run.model.missing()


@pytest.mark.parametrize(
    ("added", "said"),
    [
        ("--language-model-type=mistral_7b --img-h 336", "a language model with an encoder of images"),
        ("--retro-add-retriever", "a decoder with retrieval"),
        ("--use-lf-gate --lf-conv2d-group 1", "a decoder with convolutions in its attention"),
        ("--experimental-attention-variant other", "must be one of gdn, gdn2, gated_delta_net, dsa"),
        ("--experimental-attention-variant gdn", "beside a number as linear_attention_freq"),
        ("--pipeline-model-parallel-layout 'Et|x'", "is no layout"),
        ("--pipeline-model-parallel-layout 'Et*16|t*15|tL'", "has 3 parts, which 2 stages do not divide"),
    ],
)
def test_what_is_no_decoder_or_no_layout_is_refused(read, added, said):
    with pytest.raises(ConfigError, match=said):
        read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {added}"))


def test_data_that_is_prepared_and_tasks_are_no_training(read):
    for program in ("tools/retro/preprocess_data.py", "tasks/msdp/main.py --task KNWL-EVAL", "../analyze_data.py"):
        with pytest.raises(ConfigError, match="which does not train"):
            read("train.sh", MEGATRON.replace("pretrain_gpt.py", program))


def test_a_command_that_is_commented_out_starts_nothing(read):
    sweep = "bash 110m.sh --lr 0.002\nbash 110m.sh --lr 0.004\n"
    said = (
        f"# torchrun pretrain_gpt.py {' '.join(MEGATRON.split()[20:60])} --num-attention-heads 8 --micro-batch-size 1"
    )
    with pytest.raises(ConfigError, match="has no command of"):
        read("sweep.sh", f"{sweep}{said}\n")


def test_linear_attention_counts_its_own_parameters(read):
    gated = "--experimental-attention-variant gated_delta_net --linear-attention-freq 4 --attention-output-gate"
    run = read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {gated}"))
    width, keys, values = 4096, 16 * 128, 32 * 128
    linear = width * (2 * keys + 3 * values + 2 * 32) + 4 * (2 * keys + values)
    full = width * 128 * (3 * 32 + 2 * 8)
    assert run.model.attention_parameters == round(0.75 * linear + 0.25 * full)
    assert any("gated_delta_net in 24 of 32 layers" in note for note in run.notes)
    sparse = read("train.sh", MEGATRON.replace("--bf16", "--bf16 --experimental-attention-variant dsa"))
    assert sparse.model.attention_parameters is None
    assert any("indexer of sparse attention is not counted" in note for note in sparse.notes)


def test_a_layout_says_virtual_stages_and_goes_where_the_pipeline_changes(read):
    run = read("train.sh", MEGATRON.replace("--bf16", "--bf16 --pipeline-model-parallel-layout 'Et*8|(t*8|)*2,t*8L'"))
    assert str(run.plan) == "replica=8 model=4 stage=2 microbatches=16 pipeline_repeats=2 remat=full"
    same = Plan.parse("replica=4 model=8 stage=2 microbatches=16 pipeline_repeats=2 remat=full")
    line = launch_lines(same, "megatron", run.hyperparameters, global_batch=256, layers=32)
    assert line == "--tensor-model-parallel-size 8 --micro-batch-size 4"
    flat = Plan.parse("replica=16 model=4 microbatches=8 remat=full")
    line = launch_lines(flat, "megatron", run.hyperparameters, global_batch=256, layers=32)
    assert line == "--pipeline-model-parallel-size 1 # without --pipeline-model-parallel-layout"


@pytest.mark.parametrize(("said", "heads"), [("--attention-head-type multiquery", 1), ("--num-key-value-heads 4", 4)])
def test_key_and_value_heads_under_the_names_of_forks(read, said, heads):
    plain = MEGATRON.replace("--group-query-attention --num-query-groups 8", said)
    assert read("train.sh", plain).model.kv_heads == heads


def test_a_layout_of_a_variable_keeps_its_bars(read):
    text = MEGATRON.replace(
        "MODEL_ARGS=(", 'PARTS="Et*8|(t*8|)*2,t*8L"\nMODEL_ARGS=(\n  --pipeline-model-parallel-layout $PARTS'
    )
    assert read("train.sh", text).plan.pipeline_repeats == 2


def test_what_is_sourced_decides_only_arguments_that_come_from_there(read):
    settled = MEGATRON.replace("--recompute-granularity full", "").replace(
        "export NCCL", "source ~/.bashrc\nexport NCCL"
    )
    run = read("train.sh", settled.replace("${MODEL_ARGS[@]}", "${MODEL_ARGS[@]} --log-dir $LOGS"), hardware="h100-64")
    assert str(run.plan.remat) == "none"
    open_ = read("train.sh", settled.replace("${MODEL_ARGS[@]}", "${MODEL_ARGS[@]} $EXTRA_ARGS"), hardware="h100-64")
    assert open_.plan.remat is None


def test_key_and_value_heads_that_a_checkpoint_decides_are_unknown(read):
    plain = MEGATRON.replace(" --group-query-attention --num-query-groups 8", "")
    run = read("train.sh", plain.replace("--bf16", "--bf16 --use-checkpoint-args"))
    assert run.model is not None
    assert run.model.kv_heads is None
    assert any("it hangs on num_key_value_heads" in note for note in run.notes)
    said = read("train.sh", plain.replace("--bf16", "--use-checkpoint-args --bf16"), "num_key_value_heads=8")
    assert size(said) == size(read("train.sh", MEGATRON.replace("--bf16", "--bf16 --use-checkpoint-args")))


def test_processes_by_directives_of_slurm_with_the_kind_of_gpu(read):
    slurm = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n#SBATCH --gpus-per-node=mi250:8\n"
    command = MEGATRON.replace("torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NUM_NODES", "srun python")
    assert read("train.sh", slurm + command).hardware.devices == 32


@pytest.mark.parametrize(
    ("directives", "chip"),
    [
        ("#SBATCH --gres=gpu:h100:8\n", "h100"),
        ("#SBATCH --nodes=8 --gpus-per-node a100:8\n", "a100-80gb"),
        ("#SBATCH --gres=gpu:nvidia_a100-sxm4-40gb:8\n", "a100-40gb"),
        ("#SBATCH --gpus-per-node=8\n", None),
        ("##SBATCH --gres=gpu:h100:8\n", None),
        ("#SBATCH --gres=gpu:somegpu:8\n", None),
        ("#SBATCH --gres=gpu:h100:8\n#SBATCH --gres=gpu:v100:8\n", None),
    ],
)
def test_the_kind_of_gpu_that_a_script_asks_its_scheduler_for(read, directives, chip):
    run = read("train.sh", directives + MEGATRON)
    assert (run.hardware.chip, run.hardware.devices) == (chip, 64)
    assert read("train.sh", directives + MEGATRON, hardware="h200-64").hardware.chip == "h200"


@pytest.mark.parametrize(
    ("file", "vocabulary"),
    [("gpt2-vocab.json", 50_688), ("$VOCAB_FILE", 50_688), ("nordic_131072/vocab.json", None)],
)
def test_a_tokenizer_of_gpt2s_kind_has_its_vocabulary_where_the_file_is_gpt2s(read, file, vocabulary):
    bare = read("train.sh", MEGATRON.replace("--vocab-size 128256", f"--vocab-file {file}"))
    assert bare.model is not None
    assert bare.model.vocab == (vocabulary if "gpt2" in file else None)
    said = f"--tokenizer-type GPT2BPETokenizer --vocab-file {file}"
    run = read("train.sh", MEGATRON.replace("--vocab-size 128256", said))
    assert run.model is not None
    assert run.model.vocab == vocabulary
    assert any("the vocabulary is not said" in note for note in run.notes) == (vocabulary is None)
    answered = read("train.sh", MEGATRON.replace("--vocab-size 128256", said), "model.vocab=131072").notes
    assert not any("add model.vocab" in note for note in answered)


def test_arguments_of_a_fork_are_named(read):
    of_fork = "--bf16 --outer-sync-interval 50 --outer-optimizer nesterov --data-path $(python data.py --x 1)"
    run = read("train.sh", MEGATRON.replace("--bf16", of_fork))
    assert any(note.endswith("is not known: --outer-sync-interval, --outer-optimizer") for note in run.notes)
    plain = "--bf16 --no-bias-gelu-fusion --disable-bias-linear --wandb-project x --lr 1e-4 --data-path a"
    assert not any("no Megatron-LM has" in note for note in read("train.sh", MEGATRON.replace("--bf16", plain)).notes)


def test_arguments_that_say_how_processes_meet_change_nothing_of_a_step(read):
    more = "--bf16 --main-addr=$HEAD --rendezvous-port 2000"
    assert not any("no Megatron-LM has" in note for note in read("run.sh", MEGATRON.replace("--bf16", more)).notes)


def test_arguments_of_a_fork_are_named_where_only_a_run_can_tell_the_command(read):
    text = MEGATRON.replace("--swiglu", "--swiglu --use-bridge --bridge-hf-model $MODEL")
    text = text.replace("torchrun --nproc", 'if [[ "$WITH" == "mpi" ]]; then\nAPP="torchrun --nproc').replace(
        "--recompute-granularity full", '--recompute-granularity full"\nfi\n$BINDING $RANK ${APP}'
    )
    run = read("train.sh", text)
    assert any(note.endswith("is not known: --use-bridge, --bridge-hf-model") for note in run.notes)


def test_experts_that_are_split_further_than_attention_are_said(read):
    more = "--bf16 --num-experts 8 --tensor-model-parallel-size 2 --expert-model-parallel-size 4"
    run = read("moe.sh", MEGATRON.replace("--bf16", f"{more} --expert-tensor-parallel-size 4").replace(" $TP", " 2"))
    assert run.plan.degree("expert") == 8
    assert any("expert_tensor_parallel_size=4: 4 x 4 devices are taken as 8 x 2" in note for note in run.notes)


def test_a_file_that_is_sourced_from_a_folder_above(read, tmp_path):
    (tmp_path / "common.sh").write_text(": ${LAYERS:=16}\n")
    (tmp_path / "runs").mkdir()
    script = MEGATRON.replace("TP=", 'source "$HERE/../common.sh"\nTP=').replace(
        "--num-layers 32", "--num-layers $LAYERS"
    )
    run = read("runs/train.sh", script)
    assert run.model.layers == 16


@pytest.mark.parametrize("option", ["--use-flash-attn", "--use-flash-attn-v2", "--use-flash-attn-triton"])
def test_attention_is_fused_by_any_of_the_options_for_it(read, option):
    assert read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {option}")).workload.attention == "flash"
    assert read("train.sh", MEGATRON).workload.attention is None


@pytest.mark.parametrize(
    "option", ["--transformer-impl local", "--attention-backend unfused", "--attention-backend local"]
)
def test_attention_of_its_own_has_a_fused_softmax_unless_that_is_switched_off(read, option):
    assert read("train.sh", MEGATRON.replace("--bf16", f"--bf16 {option}")).workload.attention == "fused softmax"
    unfused = MEGATRON.replace("--bf16", f"--bf16 {option} --no-masked-softmax-fusion")
    assert read("train.sh", unfused).workload.attention == "torch"


def test_what_changes_memory_and_is_not_predicted_is_said(read):
    more = "--bf16 --fine-grained-activation-offloading --offload-modules expert_fc1 --distribute-saved-activations"
    more += " --num-distributed-optimizer-instances 2 --optimizer-offload-fraction 0.5 --cpu-offloading-num-layers 0"
    notes = [note for note in read("run.sh", MEGATRON.replace("--bf16", more)).notes if "does not use" in note]
    assert notes == [
        "the prediction does not use fine_grained_activation_offloading, distribute_saved_activations,"
        " optimizer_offload_fraction=0.5, num_distributed_optimizer_instances=2"
    ]
    usual = MEGATRON.replace("--bf16", "--bf16 --optimizer-offload-fraction 1.0")
    assert not any("does not use" in note for note in read("run.sh", usual).notes)


@pytest.mark.parametrize("said", ["layernorm moe_act", '"[layernorm, moe_act]"', "layernorm,moe_act"])
def test_modules_are_read_as_words_or_as_a_list(read, said):
    chosen = f"--moe-grouped-gemm --recompute-granularity selective --recompute-modules {said}"
    run = read("run.sh", MEGATRON.replace("--recompute-granularity full", chosen))
    assert run.plan.remat.value == "selective.layernorm+moe_act"


def test_an_option_that_an_undecided_test_chooses_is_left_out_and_named(read):
    more = '--bf16 $( [ "$PRECISION" = fp8 ] && echo "--fp8-format hybrid" )'
    run = read("run.sh", MEGATRON.replace("--bf16", more))
    assert any("--fp8-format" in note and "conditions that it does not decide" in note for note in run.notes)
    assert run.workload.precision is None


def test_arguments_that_only_a_run_can_tell_are_named(read):
    more = '--bf16 "${FROM_FILE[@]}" $NEVER_SET'
    run = read("run.sh", "readarray -t FROM_FILE < more.txt\n" + MEGATRON.replace("--bf16", more))
    assert [note for note in run.notes if "only a run can tell" in note] == [
        "run.sh adds ${FROM_FILE[@]} to its command, which only a run can tell: not read"
    ]


def test_arguments_that_no_command_takes_are_no_run(read):
    text = "python3 - <<PY\nrun('--num-attention-heads 8 --micro-batch-size 1')\nPY\n"
    with pytest.raises(ConfigError, match="no command that is read which takes them"):
        read("run.sh", text)


def test_a_script_that_only_sets_arguments_says_so(read):
    setting = "MODEL_ARGS='--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --micro-batch-size 2'\n"
    said = "model.sh starts no run itself: the arguments that it sets are read, with Megatron-LM's defaults"
    assert said in read("model.sh", setting, hardware="h100-8").notes
    assert said not in read("model.sh", f"{setting}torchrun pretrain_gpt.py $MODEL_ARGS\n", hardware="h100-8").notes
