import json

import pytest

from asap.experiments.create import Statement, create_experiment
from asap.proposals.propose import propose
from asap.proposals.selection.ranked_candidates import rank_candidates
from asap.proposals.trials import trials_of
from asap.study.study import study_of

MEGATRON = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 3072 --num-attention-heads 24"
    " --seq-length 4096 --micro-batch-size 1 --global-batch-size 64 --vocab-size 50304 --use-distributed-optimizer"
    " --tensor-model-parallel-size 2 --sequence-parallel {more}\n"
)
TRAINER = (
    "torchrun --nproc_per_node 8 tune.py --deepspeed zero3.json --model_name_or_path Qwen/Qwen3-4B --packing true"
    " --per_device_train_batch_size 1 --gradient_accumulation_steps 8 --max_seq_length 4096 {more}\n"
)
TITAN = "[model]\nname = 'llama3'\nflavor = '8B'\n[training]\nlocal_batch_size = 1\nseq_len = 8192\n{more}\n"
ZERO = {"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto"}


@pytest.fixture
def study(tmp_path):
    def read(text, hardware="h100-8"):
        file = tmp_path / ("run.toml" if text.startswith("[model]") else "run.sh")
        file.write_text(text, encoding="utf-8")
        (tmp_path / "zero3.json").write_text(json.dumps(ZERO), encoding="utf-8")
        return study_of(create_experiment("run", Statement(hardware=hardware), config=file))

    return read


def offered(study):
    return next((trial for trial in trials_of(study) if trial.name == "mixed_precision"), None)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (MEGATRON.format(more=""), "--bf16"),
        (TRAINER.format(more=""), "--bf16 true"),
        (
            TITAN.format(more="mixed_precision_param = 'float32'"),
            '[training]\nmixed_precision_param = "bfloat16"',
        ),
    ],
)
def test_who_trains_in_fp32_is_told_of_16_bits_before_any_plan(study, text, line):
    slow = study(text)
    assert slow.experiment.workload.precision == "fp32"
    trial, advised = offered(slow), propose(rank_candidates(slow, {}), lambda study, plan: ())
    assert trial is not None
    assert trial.line == line
    assert "numerics change" in trial.statement
    assert trial.gain is not None
    assert trial.gain > 0.5
    assert advised.recommendation.setting == "mixed_precision"
    assert advised.situation is not None
    assert advised.situation.name != "well_set"


@pytest.mark.parametrize(
    ("text", "hardware"),
    [
        (MEGATRON.format(more="--bf16"), "h100-8"),
        (MEGATRON.format(more=""), "v100-8"),
        (TRAINER.format(more="--bf16 true"), "h100-8"),
        (TRAINER.format(more="--torch_dtype bfloat16"), "h100-8"),
    ],
)
def test_16_bits_that_run_or_that_the_chip_has_not_are_no_test(study, text, hardware):
    assert offered(study(text, hardware)) is None
