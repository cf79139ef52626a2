import pytest

from asap.experiments.create import Statement, create_experiment
from asap.optimize.by_model import optimize_by_model
from asap.proposals.propose import propose
from asap.proposals.selection.ranked_candidates import rank_candidates
from asap.proposals.trials import trials_of
from asap.study.study import study_of

SETTING_FIRST = "Start with a setting, not with a plan: a fused attention kernel"
TRAINER = (
    "accelerate launch --num_processes 8 --use_fsdp --fsdp_sharding_strategy FULL_SHARD tune.py --bf16 true"
    " --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size {batch} --max_seq_length 8192 --packing true"
    " --gradient_checkpointing true --attn_implementation {kernel}\n"
)
MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16"
    " --seq-length 8192 --micro-batch-size 1 --global-batch-size 64 --bf16 --vocab-size 50304"
    " --use-distributed-optimizer {kernel}\n"
)
MAXTEXT = (
    "base_config: base.yml\nmodel_name: llama3.1-8b\nattention: {kernel}\nper_device_batch_size: 1\n"
    "max_target_length: 8192\nremat_policy: full\nici_fsdp_parallelism: {devices}\n"
)


@pytest.fixture
def study(tmp_path):
    def read(text, hardware):
        file = tmp_path / ("run.yml" if text.startswith("base_config") else "run.sh")
        file.write_text(text, encoding="utf-8")
        return study_of(create_experiment("run", Statement(hardware=hardware), config=file))

    return read


def offered(study):
    return next((trial for trial in trials_of(study) if trial.name == "fused_attention"), None)


@pytest.mark.parametrize(
    ("text", "hardware", "line"),
    [
        (TRAINER.format(batch=1, kernel="eager"), "h100-8", "--attn_implementation flash_attention_2"),
        (MEGATRON.format(kernel="--attention-backend unfused"), "a100-8", "--attention-backend fused"),
        (MEGATRON.format(kernel="--transformer-impl local"), "h100-8", "--use-flash-attn"),
        (MAXTEXT.format(kernel="dot_product", devices=16), "h100-16", "attention=cudnn_flash_te"),
        (MAXTEXT.format(kernel="dot_product", devices=64), "v6e-64", "attention=flash"),
    ],
)
def test_scores_that_go_through_hbm_are_told_to_stay_on_the_chip_in_the_words_of_the_stack(study, text, hardware, line):
    trial = offered(study(text, hardware))
    assert trial is not None
    assert trial.line == line
    assert trial.gain is not None
    assert trial.gain > 0.1


@pytest.mark.parametrize(
    ("text", "hardware"),
    [
        (TRAINER.format(batch=1, kernel="sdpa"), "h100-8"),
        (TRAINER.format(batch=1, kernel="eager"), "v100-8"),
        (MEGATRON.format(kernel="--attention-backend auto"), "h100-8"),
        (MAXTEXT.format(kernel="autoselected", devices=64), "v6e-64"),
    ],
)
def test_a_kernel_that_runs_or_that_the_chip_has_not_is_no_test(study, text, hardware):
    assert offered(study(text, hardware)) is None


def test_it_comes_before_every_plan_that_saves_less(study):
    slow = study(MAXTEXT.format(kernel="dot_product", devices=16), "h100-16")
    advised = propose(rank_candidates(slow, {}), lambda study, plan: ())
    trial, first = offered(slow), advised.proposals[0].prediction.relative_step_time
    assert trial is not None
    assert first is not None
    assert trial.gain is not None
    assert trial.gain > 1 - first.value
    assert advised.recommendation.statement.startswith(SETTING_FIRST)
    assert advised.recommendation.setting == "fused_attention"
    assert optimize_by_model(slow).learnt[0].startswith(SETTING_FIRST)


def test_what_does_not_fit_for_its_scores_is_told_whether_it_fits_without_them(study):
    large = study(TRAINER.format(batch=2, kernel="eager"), "h100-8")
    advised, trial = propose(rank_candidates(large, {}), lambda study, plan: ()), offered(large)
    assert advised.situation is not None
    assert advised.situation.name == "does_not_fit"
    assert trial is not None
    assert (trial.fits, trial.saved_bytes > 10 * 2**30) == (True, True)
    assert "less HBM with it" in trial.statement
    assert advised.recommendation.statement.startswith(SETTING_FIRST)
    assert "the run fits with it" in advised.recommendation.statement


def test_a_line_holds_no_key_that_a_file_made_up(study):
    hostile = TRAINER.format(batch=1, kernel="eager").replace("\n", " '--x\x1b[2J.attn_implementation' eager\n")
    trial = offered(study(hostile, "h100-8"))
    assert trial is not None
    assert trial.line == "--attn_implementation flash_attention_2"
