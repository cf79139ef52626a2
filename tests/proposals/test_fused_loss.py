"""Liger's fused linear cross-entropy: read where it is on, offered where logits take HBM that counts."""

import pytest

from asap.experiments.create import Statement, create_experiment
from asap.prediction.predict_study import expect
from asap.proposals.trials import trials_of
from asap.reports.record import record_facts
from asap.study.study import study_of

TRAINER = (
    "accelerate launch --num_processes 8 --use_fsdp --fsdp_sharding_strategy FULL_SHARD tune.py --bf16 true"
    " --model_name_or_path {model} --per_device_train_batch_size 4 --max_seq_length 8192 --packing true"
    " --gradient_checkpointing true --attn_implementation flash_attention_2 {more}\n"
)
FACTORY = (
    "model_name_or_path: meta-llama/Llama-3.1-8B\nstage: sft\nfinetuning_type: full\ncutoff_len: 8192\n"
    "per_device_train_batch_size: 4\nbf16: true\ndeepspeed: ds.json\n{more}\n"
)
AXOLOTL = (
    "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 8192\nmicro_batch_size: 4\nsample_packing: true\nbf16: true\n"
    "flash_attention: true\ngradient_checkpointing: true\ndatasets: []\nfsdp_version: 2\n"
    "fsdp_config: {{reshard_after_forward: true}}\n{more}\n"
)
ZERO = '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": true}}'


@pytest.fixture
def study(tmp_path):
    def read(text, more="", model="meta-llama/Llama-3.1-8B", hardware="h100-8"):
        file = tmp_path / ("run.sh" if text is TRAINER else "run.yml")
        file.write_text(text.format(model=model, more=more), encoding="utf-8")
        (tmp_path / "ds.json").write_text(ZERO)
        return study_of(create_experiment("run", Statement(hardware=hardware), config=file))

    return read


def offered(study):
    return next((trial for trial in trials_of(study) if trial.name == "fused_loss"), None)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TRAINER, "--use_liger_kernel true"),
        (FACTORY, "enable_liger_kernel: true"),
        (AXOLOTL, "plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true"),
    ],
)
def test_logits_that_take_much_of_the_hbm_are_told_in_the_words_of_the_stack(study, text, line):
    trial = offered(study(text))
    assert trial is not None
    assert trial.line == line
    assert trial.saved_bytes > 4 * 2**30


@pytest.mark.parametrize(
    ("text", "more"),
    [
        (TRAINER, "--use_liger_kernel true"),
        (TRAINER, "--torch_compile true"),
        (FACTORY, "enable_liger_kernel: true"),
        (AXOLOTL, "liger_fused_linear_cross_entropy: true"),
        (AXOLOTL, "cut_cross_entropy: true"),
        (AXOLOTL, "plugins: [axolotl.integrations.swanlab.SwanLabPlugin]"),
    ],
)
def test_it_is_not_offered_where_it_is_on_or_compiled_or_its_line_would_replace_others(study, text, more):
    assert offered(study(text, more)) is None


def test_nor_for_a_model_or_a_chip_that_it_has_no_kernels_for(study):
    assert offered(study(TRAINER, model="tiiuae/falcon-7b")) is None
    assert offered(study(TRAINER, hardware="v100-32gb-8")) is None


def test_with_it_a_run_holds_less_by_nearly_all_that_its_logits_took(study):
    def held(more):
        found = study(TRAINER, more)
        (prediction,) = expect(found, [found.plan])
        assert prediction.memory is not None
        return prediction.memory.total.value

    logits, whole = 4 * 8192 * 128_256, held("")
    assert whole - held("--use_liger_kernel true") > 8 * logits
    off = "--use_liger_kernel true --liger_kernel_config.fused_linear_cross_entropy false"
    assert held(off) == whole


def test_the_record_shows_it(study):
    told = dict(record_facts(study(AXOLOTL, "cut_cross_entropy: true").experiment))
    assert "fused linear cross entropy" in told["numerics"]
