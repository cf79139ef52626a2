import pytest

from asap.core.units import Provenance, Quantity
from asap.experiments.create import Statement, create_experiment
from asap.prediction.predict_study import expect
from asap.prediction.uncertainty.calibration import load_calibration
from asap.proposals.launch import launcher_line
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.recommend import add_trial, recommend
from asap.proposals.trials import trials_of
from asap.study.study import study_of
from tests.cases import cases, kept

DENSE = kept(__file__)["DENSE"]
MIXTURE = kept(__file__)["MIXTURE"]
NCCL = " --moe-token-dispatcher-type alltoall"


@pytest.fixture
def offered(tmp_path):
    def read(text, hardware="h100-32"):
        script = tmp_path / "run.sh"
        script.write_text(f"{text}\n", encoding="utf-8")
        study = study_of(create_experiment("run", Statement(hardware=hardware), config=script))
        return study, {trial.name: trial for trial in trials_of(study)}

    return read


def test_a_state_that_every_replica_holds_is_told_to_be_sharded_before_any_plan(offered):
    study, trials = offered(f"{DENSE} --tensor-model-parallel-size 2")
    trial = trials["distributed_optimizer"]
    assert trial.line == "--use-distributed-optimizer"
    assert trial.fits
    moments_and_weights_in_fp32, parameters, tensor, replicas = 12, 12.9e9, 2, 16
    held = moments_and_weights_in_fp32 * parameters / tensor
    reserved = held * load_calibration().full.overhead("megatron-core").scale
    assert trial.saved_bytes == pytest.approx(reserved * (1 - 1 / replicas), rel=0.02)
    advised = propose(rank_candidates(study, {}), lambda study, plan: ())
    assert (advised.situation.name, advised.recommendation.setting) == ("does_not_fit", "distributed_optimizer")
    assert "less HBM, and the run fits" in advised.recommendation.statement
    assert next(iter(trials)) == "distributed_optimizer"


def test_deepspeed_is_told_of_its_first_stage(offered, tmp_path):
    (tmp_path / "zero0.json").write_text('{"bf16": {"enabled": true}, "zero_optimization": {"stage": 0}}')
    _, trials = offered(
        "deepspeed --num_gpus 8 tune.py --deepspeed zero0.json --model_name_or_path Qwen/Qwen3-4B --packing true"
        " --per_device_train_batch_size 1 --max_seq_length 4096 --gradient_checkpointing true", "h100-8",
    )  # fmt: skip
    assert trials["distributed_optimizer"].line == '{"zero_optimization": {"stage": 1}}'


TUNE = kept(__file__)["TUNE"]


@pytest.mark.parametrize(("hardware", "size"), [("h100-8", None), ("h100-32", 8), ("8x4xh100", 4)])
def test_a_second_copy_of_parameters_is_offered_inside_a_node_where_zero_3_spans_several(
    offered, tmp_path, hardware, size
):
    (tmp_path / "zero3.json").write_text('{"bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}')
    _, trials = offered(TUNE.replace("--num_gpus 8 --num_nodes 4", ""), hardware)
    found = trials.get("secondary_shards")
    assert (found.line if found else None) == (
        None if size is None else f'{{"zero_optimization": {{"zero_hpz_partition_size": {size}}}}}'
    )
    if found:
        parameters, half = 14.8e9, 2
        reserved = load_calibration().full.overhead("pytorch").scale
        assert -found.saved_bytes == pytest.approx(half * parameters / size * reserved, rel=0.05)
        assert "more HBM" in found.statement


def test_a_second_copy_on_record_takes_hbm_for_time(offered, tmp_path):
    steps = []
    for more in ("", ', "zero_hpz_partition_size": 8'):
        (tmp_path / "zero3.json").write_text(
            f'{{"bf16": {{"enabled": true}}, "zero_optimization": {{"stage": 3{more}}}}}'
        )
        study, trials = offered(TUNE.replace("--num_gpus 8 --num_nodes 4", ""))
        (found,) = expect(study, [study.plan])
        steps.append((found.step_time.value, found.memory.total.value))
    assert "secondary_shards" not in trials
    assert steps[1][0] < steps[0][0]
    assert steps[1][1] > steps[0][1]


def test_nanotron_is_told_in_its_yaml(tmp_path):
    size = (
        "hidden_size: 4096, intermediate_size: 11008, num_attention_heads: 32, num_hidden_layers: 32, vocab_size: 50304"
    )
    file = tmp_path / "run.yml"
    file.write_text(
        f"model:\n  dtype: bfloat16\n  model_config: {{is_llama_config: true, {size}, num_key_value_heads: 32}}\n"
        "optimizer: {zero_stage: 0, accumulate_grad_in_fp32: true}\n"
        "parallelism: {dp: 8, tp: 4, pp: 1, tp_mode: ALL_REDUCE}\n"
        "tokens: {batch_accumulation_per_replica: 4, micro_batch_size: 2, sequence_length: 4096, train_steps: 10}\n"
    )
    study = study_of(create_experiment("run", Statement(hardware="h100-32"), config=file))
    assert {trial.name: trial.line for trial in trials_of(study)} == {
        "distributed_optimizer": "optimizer: {zero_stage: 1}  # its other keys stay"
    }
    split = study.plan.model_copy(update={"sequence_parallel": True})
    assert launcher_line(study, split) == "parallelism: {tp_mode: REDUCE_SCATTER}  # its other keys stay"


@cases("more, then")
def test_norms_that_every_tensor_device_repeats_are_split_by_the_plan_that_is_proposed(offered, more, then):
    study, _ = offered(f"{DENSE} --tensor-model-parallel-size 8 --use-distributed-optimizer{more}")
    split = study.plan.model_copy(update={"sequence_parallel": True})
    assert launcher_line(study, split) == f"--sequence-parallel{then}"
    now, then_held = (one.memory.total.value for one in expect(study, [study.plan, split]))
    assert then_held < now
    first = propose(rank_candidates(study, {}), lambda *_: ()).proposals[0].plan
    assert (first.degree("model") > 1, first.sequence_parallel) == (True, True)


def test_copies_of_a_token_for_each_expert_are_told_to_be_sent_once_to_a_node(offered):
    _, trials = offered(MIXTURE + NCCL, "h100-64")
    line = "--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep --moe-router-dtype fp32"
    assert trials["expert_dispatcher"].line == line
    assert trials["expert_dispatcher"].gain > 0.05
    assert "token_exchange" not in trials


@cases("run, more, hardware, name")
def test_what_is_set_or_cannot_be_is_no_test(offered, run, more, hardware, name):
    _, trials = offered(f"{kept(__file__)[run]} {more}", hardware)
    assert name not in trials


@cases("change, first")
def test_a_setting_that_does_not_make_a_run_fit_comes_before_no_plan_that_does(offered, change, first):
    study, _ = offered(f"{DENSE} --tensor-model-parallel-size 2")
    advised = propose(rank_candidates(study, {}), lambda study, plan: ())
    advice, best = recommend(advised.proposals, 1, advised.situation), advised.proposals[0].prediction
    fields = {"fits": False, "saved_bytes": 4e9, "relative_step_time": 0.99} | change
    ratio, kind = fields["relative_step_time"], Provenance.MODELLED
    fields["relative_step_time"] = Quantity(value=ratio, unit="fraction", provenance=kind, source="a test")
    trial = advised.trials[0].model_copy(update=fields)
    said = add_trial(advice, trial, best, advised.situation)
    assert (said.setting == trial.name) == first
    assert said.statement.startswith("Start with a setting" if first else "Start with proposal 1")
