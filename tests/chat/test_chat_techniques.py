"""Whether a technique pays here, whatever plan was spoken of, and what FSDP is in a Megatron run without it."""

import re

import pytest

from asap.experiments import Experiment, ExperimentStore
from asap.experiments.create import Statement, create_experiment
from asap.plans import Plan
from tests.chat.conftest import LLAMA
from tests.experiments.stack_configurations import MIXTURE

pytestmark = pytest.mark.slow
RUN = "replica=4 model=4 microbatches=16 remat=full"


@pytest.fixture
def megatron(start):
    ExperimentStore().add(Experiment.model_validate({
        "id": "techniques", "model": LLAMA,
        "workload": {
            "global_batch": 128, "sequence_length": 4096, "precision": "bf16", "optimizer": "adamw",
            "framework": "Megatron-LM", "sequence_parallel": True,
        },
        "hardware": {"name": "h100-16", "chip": "h100", "devices": 16},
        "plan": Plan.parse(RUN).model_dump(mode="json"),
    }), replace=True)  # fmt: skip
    return start("techniques")


def ask(chat, text):
    answer = chat.turn(text, lambda piece: None)
    assert answer is not None
    return answer.text


def seconds(text, label):
    return float(re.findall(rf"{re.escape(label)}.*?step time ([\d.]+) s", text)[0])


def test_sequence_parallelism_is_weighed_in_the_run_after_another_plan(megatron):
    ask(megatron, "why not tp=2?")
    said = ask(megatron, "is sequence parallel worth it here?")
    assert "(model=4)" in said
    gain = seconds(said, f"{RUN} without it") - seconds(said, f"{RUN} with it")
    assert ("to pay: the step is predicted" in said and "not to pay" not in said) == (
        gain > 0.03 * seconds(said, f"{RUN} without it")
    )
    ask(megatron, "why not tp=2?")
    assert "(model=2)" in ask(megatron, "is sequence parallel worth it there?")


@pytest.mark.parametrize("asked", ["is sequence parallel worth it here?", "does CP buy us anything?"])
def test_an_axis_that_the_run_lacks_is_weighed_against_the_run(asked, dense):
    ask(dense, "why not model=8?")
    said = ask(dense, asked)
    assert said.startswith("Context parallelism (seq) is not used in what runs now (data=16 model=4")
    assert re.search(r"- with it, \S+ seq=\d+ ", said)
    assert "- without it, data=16 model=4 " in said
    assert "In time it" in said


def test_an_axis_in_use_is_weighed_against_the_run_without_it(dense):
    ask(dense, "explain proposal 2")
    said = ask(dense, "is tensor parallelism worth it on this run?")
    assert "- with it, data=16 model=4 " in said
    assert "- without it, data=64 " in said
    faster = seconds(said, "- with it") < seconds(said, "- without it")
    assert ("shorter with it" in said) == faster
    low, high = map(int, re.findall(r"step time \S+ % \((\S+) to (\S+) %\)", said)[0])
    assert ("the interval goes both ways, so measure it" in said) == (low < 0 < high)


def test_hybrid_sharding_is_a_plan_and_no_single_axis(dense):
    assert "replica=" in ask(dense, "is HSDP worth it?")
    assert "with it," not in ask(dense, "is HSDP worth it?")


def test_recomputation_is_weighed_in_the_run_after_another_plan(dense):
    ask(dense, "why not model=8?")
    said = ask(dense, "is remat worth it here?")
    assert "model=8" not in said
    assert "- data=16 model=4 remat=full, as it is: step time" in said
    rows = re.findall(r"remat=(\S+?),? .*\((fits|does not fit|may not fit)\)", said)
    assert ("Without any, HBM is exceeded" in said) == (dict(rows).get("none:") == "does not fit")


def test_fsdp_in_megatron_is_named_for_what_it_is_there(megatron, dense):
    said = ask(megatron, "fsdp 4")
    assert "data=4 model=4" in said
    assert "--use-megatron-fsdp) over 4 data ranks" in said
    assert "use-megatron-fsdp" in ask(megatron, "how do I launch data=4 model=4?")
    assert "Megatron" not in ask(dense, "fsdp 16")


def test_the_distributed_optimizer_is_weighed_with_and_without_it(megatron):
    ask(megatron, "why not tp=2?")
    said = ask(megatron, "would the distributed optimizer help?")
    held = [float(size) for size in re.findall(rf"{re.escape(RUN)} with(?:out)? it: .*HBM ([\d.]+) GiB", said)]
    assert held[0] < held[1]


def test_a_setting_that_is_offered_for_a_test_is_answered_with_what_it_is_expected_to_bring(start, tmp_path):
    script = tmp_path / "moe.sh"
    script.write_text(f"{MIXTURE}\n", encoding="utf-8")
    record = create_experiment("mixture", Statement(hardware="h100-64"), config=script)
    ExperimentStore().add(record, replace=True)
    answer = start("mixture").turn("would cuda graphs help?", lambda piece: None)
    assert "modelled, the step takes" in answer.text
    assert "--cuda-graph-impl transformer_engine" in answer.text


@pytest.fixture
def unfused(start, tmp_path):
    def open_chat(kernel):
        file = tmp_path / "run.yml"
        file.write_text(
            f"base_config: base.yml\nmodel_name: llama3.1-8b\nattention: {kernel}\nper_device_batch_size: 1\n"
            "max_target_length: 8192\nremat_policy: full\nici_fsdp_parallelism: 16\n", encoding="utf-8",
        )  # fmt: skip
        store = ExperimentStore()
        store.add(create_experiment(kernel, Statement(hardware="h100-16"), config=file), replace=True)
        return start(kernel)

    return open_chat


def test_a_setting_that_saves_more_than_every_plan_is_named_first(unfused):
    chat = unfused("dot_product")
    first = ask(chat, "which one goes first?")
    assert first.startswith("Start with a setting, not with a plan: a fused attention kernel.")
    assert "To test it: attention=cudnn_flash_te" in first
    assert "attention=cudnn_flash_te" in ask(chat, "would flash attention buy us anything")


def test_a_kernel_that_runs_is_no_more_to_be_had(unfused):
    said = ask(unfused("cudnn_flash_te"), "worth trying flash attention?")
    assert "Attention is predicted as it runs (cudnn_flash_te)" in said


@pytest.mark.parametrize("question", ["would liger help?", "can i use cut cross entropy", "fused loss saves memory?"])
def test_a_fused_loss_is_told_with_what_it_saves_and_its_line(question, start, tmp_path):
    file = tmp_path / "run.yml"
    file.write_text(
        "base_model: Qwen/Qwen2.5-7B\nsequence_len: 8192\nmicro_batch_size: 2\nsample_packing: true\nbf16: auto\n"
        "flash_attention: true\ngradient_checkpointing: true\ndatasets: []\nfsdp_version: 2\n"
        "fsdp_config: {reshard_after_forward: true}\n"
    )
    ExperimentStore().add(create_experiment("axolotl", Statement(hardware="h100-8"), config=file), replace=True)
    said = ask(start("axolotl"), question)
    assert "GiB less HBM with it" in said
    assert "liger_fused_linear_cross_entropy: true" in said
