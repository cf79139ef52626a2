"""What is told first of a run that is not read, and what is asked of one that leaves something open."""

import pytest

from asap.core.errors import ConfigError
from asap.plans import Remat
from tests.experiments.stack_configurations import read

__all__ = ["read"]

MEGATRON = (
    "python pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 4096"
    " --max-position-embeddings 4096 --micro-batch-size 1 --global-batch-size 512 --vocab-size 32000"
    " --tensor-model-parallel-size 2 --bf16 --recompute-granularity selective"
)
CHAT = "deepspeed main.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2 --zero_stage $STAGE\n"


@pytest.mark.parametrize("more", ["--data-path 0.3 $ROOT/data/a 0.7 ${ROOT}/data/b", "$EXTRA"])
def test_what_a_command_says_is_not_lost_to_a_file_that_is_not_there(read, more):
    chosen = 'if [ -f "$ROOT/latest" ]; then EXTRA="--finetune"; else EXTRA=""; fi\n'
    run = read("train.sh", f"source $ROOT/setup.sh\n{chosen}{MEGATRON} {more}\n", hardware="h100-64")
    assert (run.plan.remat, run.workload.precision) == (Remat.SELECTIVE, "bf16")


def test_arguments_of_a_file_that_is_not_there_stay_open(read):
    silent = MEGATRON.replace(" --recompute-granularity selective", "").replace(" --bf16", "")
    run = read("train.sh", f"source $ROOT/arguments.sh\n{silent} $ARGS\n", hardware="h100-64")
    assert (run.plan.remat, run.workload.precision) == (None, None)


def test_a_stage_that_is_an_argument_of_the_script_is_asked(read):
    with pytest.raises(ConfigError, match="ZeRO stage") as caught:
        read("run.sh", f"STAGE=$2\n{CHAT}", hardware="h100-8")
    assert caught.value.hint == "add zero_optimization.stage=N, from 0 to 3"
    run = read("run.sh", f"STAGE=$2\n{CHAT}", "STAGE=3", hardware="h100-8")
    assert run.workload.zero_stage == 3


def test_adapters_are_told_before_the_launcher_is_asked(read):
    arguments = '{"model_name_or_path": "Qwen/Qwen2.5-7B", "per_device_train_batch_size": 1, "lora_rank": 64}'
    with pytest.raises(ConfigError, match="lora_rank=64: training a part"):
        read("qlora.json", arguments)


@pytest.mark.parametrize("name", ["/models/hf_llama_7b/", "models/Llama-2-7b-hf/", "hf-llama2-7b"])
def test_a_folder_of_a_model_is_known_by_its_name(read, name):
    run = read("run.sh", CHAT.replace("Qwen/Qwen3-8B", name), "STAGE=1", hardware="h100-8")
    assert (run.model.layers, run.model.d_ff) == (32, 11008)


@pytest.mark.parametrize(
    ("name", "text", "stack"),
    [
        ("r.yaml", "trainer: {devices: 8}\nuse_smp_model: true\nmodel: {shard_degree: 8}\n", "SageMaker HyperPod"),
        ("run.sh", "python3 $ROOT/main.py recipes=training/llama/hf_llama3_8b base_results_dir=x\n", "HyperPod"),
        (
            "r.yaml",
            "display_name: x\ninstance_types: [p5]\ntraining_config: {training_args: {}}\n",
            "SageMaker HyperPod",
        ),
        (
            "train.py",
            "from olmo_core.train import TrainerConfig\ndef build() -> TrainerConfig:\n    ...\n",
            "OLMo-core",
        ),
        ("main.py", "import easydel as ed\ned.Trainer()\n", "EasyDeL"),
        ("run.sh", "python -m EasyLM.models.llama.llama_train --mesh_dim=-1,64,1\n", "EasyLM"),
        ("run.sh", "srun litgpt pretrain --config ${configs[0]}\n", "LitGPT"),
        ("run.sh", "torchrun src/scripts/train/sft/OLMo-sft.py train --run_name=x\n", "OLMo-core"),
        (
            "run.sh",
            "python ../a/pretrain.py \\\n  --executor slurm --tensor_model_parallel_size 4\n",
            "launcher of NeMo-Run",
        ),
        ("p.yaml", "trainer: {init: {backend: {backend_type: CSX}, model: {name: llama}}}\n", "Cerebras"),
        ("p.yaml", "train_input: {batch_size: 8}\nmodel: {hidden_size: 8}\nrunconfig: {max_steps: 1}\n", "Cerebras"),
        ("c4.py", "from paxml import base_experiment\nfrom praxis import layers\n", "Paxml"),
        ("pretrain.gin", "BATCH_SIZE = 128\nMODEL_DIR = %gin.REQUIRED\n", "T5X"),
        ("c.yaml", "stages: [training]\ntraining: gpt3/5b\nlauncher_scripts_path: a\n", "NeMo's launcher"),
        ("t.yaml", "path: {{folder}}/vocab.json\nfile: a\n", "it is a template"),
    ],
)
def test_stacks_that_are_not_read_are_named(read, name, text, stack):
    with pytest.raises(ConfigError, match=stack):
        read(name, text)


@pytest.mark.parametrize(
    ("program", "part"),
    [
        ("train.py --train_type qlora", "--train_type qlora"),
        ("train.py --lora_r 8", "--lora_r 8"),
        ("-m tune-lora-7b", "adapters, by its name"),
        ("train.py --use_lora false", None),
    ],
)
def test_no_command_is_suggested_for_a_run_that_trains_a_part(read, program, part):
    script = f"torchrun --nproc_per_node 8 {program} --model_name Qwen/Qwen3-8B --seq_len 4096\n"
    with pytest.raises(ConfigError) as caught:
        read("run.sh", script)
    assert (part or "whose settings are not known") in caught.value.message
    assert (caught.value.hint or "").startswith(
        "try asap analyze model=Qwen/Qwen3-8B" if part is None else "give a run that"
    )


def test_embeddings_are_told_by_their_arguments(read):
    start = "torchrun --nproc_per_node 8 -m ours.run --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 4"
    with pytest.raises(ConfigError, match="train_group_size is an argument of training embeddings"):
        read("run.sh", f"{start} --train_group_size 8 --temperature 0.02\n")
    tokens = read("run.sh", f"{start} --train_group_size 8 --mode generative\n")
    assert tokens.workload.global_batch == 32


def test_a_name_that_only_begins_like_distillation_is_none(read):
    run = read("run.sh", "torchrun --nproc_per_node 8 tts_distilcodec.py --model_name_or_path Qwen/Qwen3-8B"
               " --per_device_train_batch_size 1 --block_size 4096 --gradient_checkpointing true\n")  # fmt: skip
    assert run.workload.global_batch == 8


@pytest.mark.parametrize(
    ("tokenizer", "vocabulary"),
    [
        ("Llama2Tokenizer --tokenizer-model $HOME/models/Llama-2-7b-hf/tokenizer.model", 32_000),
        ("HuggingFaceTokenizer --tokenizer-model ${ROOT}/meta-llama/Llama-3.1-8B", 128_256),
        ("Llama2Tokenizer --tokenizer-model $ROOT/tokenizer-100k.model", None),
        ("Llama2Tokenizer --tokenizer-model $TOKENIZER", None),
    ],
)
def test_the_tokenizer_of_a_known_model_has_its_vocabulary(read, tokenizer, vocabulary):
    command = MEGATRON.replace("--vocab-size 32000", f"--tokenizer-type {tokenizer}")
    run = read("train.sh", f"{command}\n", hardware="h100-64")
    assert run.model.vocab == vocabulary
    asked = [note for note in run.notes if "vocabulary is not said" in note]
    assert bool(asked) is (vocabulary is None)
    assert all("Llama 2's own has 32000" in note for note in asked)


def test_the_command_to_type_instead_has_what_is_plain(read, tmp_path):
    (tmp_path / "small.json").write_text('{"model_type": "llama", "hidden_size": 512, "num_hidden_layers": 8}')
    text = "torchrun --nproc_per_node 4 main.py --model_config small.json --batch_size 8 --total_batch_size 512\n"
    with pytest.raises(ConfigError, match=r"it starts main\.py") as caught:
        read("run.sh", text)
    line = "asap analyze small.json --hardware CHIP-4 --batch 512 --sequence N --plan data=4"
    assert caught.value.hint.startswith(f"try {line}, or replica where nothing is sharded; or give the log")
    assert caught.value.hint.endswith(f"asap resolve -- bash {tmp_path / 'run.sh'}")


@pytest.mark.parametrize(("nodes", "devices"), [(4, 32), (1, None)])
def test_recipes_of_nemo_have_eight_gpus_in_each_of_several_nodes(read, nodes, devices):
    start = f"nemo llm pretrain --factory 'llama3_70b(num_nodes={nodes})' trainer.max_steps=2\n"
    assert read("run.sh", start).hardware.devices == devices


def test_a_model_that_the_user_says_is_what_a_program_trains(read):
    start = "torchrun --nproc_per_node 8 run_speech_multipack.py --model_name_or_path x --block_size 4096"
    text = f"{start} --per_device_train_batch_size 1 --gradient_checkpointing true\n"
    with pytest.raises(ConfigError, match="by its name trains another model") as caught:
        read("run.sh", text)
    assert caught.value.hint == "add model=NAME if it trains all of that decoder"
    assert read("run.sh", text, "model=qwen3-8b").model.layers == 36
    for other in ("dpo", "lora"):
        with pytest.raises(ConfigError, match="by its name trains"):
            read("run.sh", text.replace("speech", other), "model=qwen3-8b")
