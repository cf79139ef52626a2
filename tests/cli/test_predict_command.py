import io
import json
from pathlib import Path

import pytest

from tests.cli.conftest import DECODER

DATA = Path(__file__).resolve().parents[1] / "data" / "measurements"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "train.yml"
    path.write_text(DECODER)
    return str(path)


def test_all_plans_are_ranked(asap, config):
    done = asap("predict", "--config", config, "--hardware", "v5e-64", "--top", "5", "--format", "json")
    assert done.code == 0, done.err
    predictions = json.loads(done.out)["predictions"]
    times = [prediction["step_time"]["value"] for prediction in predictions]
    assert len(times) == 5
    assert times == sorted(times)
    for prediction in predictions:
        assert prediction["step_time"]["low"] < prediction["step_time"]["value"] < prediction["step_time"]["high"]
        assert prediction["memory"]["fits"]
        assert {part["name"] for part in prediction["memory"]["parts"]} >= {"parameters", "temporaries"}


def test_named_plans_are_shown_part_by_part(asap, config):
    done = asap("predict", "--config", config, "--hardware", "v5e-64", "--plan", "data=16 model=4")
    assert done.code == 0, done.err
    assert "all-reduce" in done.out
    assert "HBM:" in done.out
    assert "modelled" in done.out


def test_a_list_has_each_plan_and_each_remark_once(asap, tmp_path):
    run = tmp_path / "run.yaml"
    run.write_text(
        "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 4096\nmicro_batch_size: 8\ndatasets: []\n"
        "gradient_checkpointing: true\n"
    )
    done = asap("predict", "--config", str(run), "--hardware", "h100-32")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    assert text.count("The interval is wide") == 1
    assert text.count("cannot be launched as they stand: Axolotl") == 1
    now = next(line for line in done.out.splitlines() if line.startswith("now: "))
    again = asap("predict", "--config", str(run), "--hardware", "h100-32", "--format", "json")
    found = json.loads(again.out)
    plans = [found["incumbent"]["plan"], *(one["plan"] for one in found["predictions"])]
    assert plans[0]["ici"]["replica"] == 32
    assert now.startswith("now: replica=32")
    assert all(plans.count(plan) == 1 for plan in plans)


def test_overrides_change_the_configuration(asap, config):
    def step(*overrides):
        arguments = ["--config", config, "--hardware", "v5e-64", "--plan", "data=64", "--format", "json"]
        return json.loads(asap("predict", *overrides, *arguments).out)["predictions"][0]["step_time"]["value"]

    assert step("per_device_batch_size=4") > 1.5 * step()


def test_what_is_missing_is_named(asap):
    asap("experiments", "add", "bare", "--hardware", "v5e-16", "--plan", "data=16")
    done = asap("predict", "bare")
    assert done.code == 5
    assert "architecture" in done.err
    assert "global batch" in done.err
    assert "asap analyze RUN model=NAME --batch N --sequence N" in done.err


def test_the_scorecard_beats_the_simple_rivals(asap):
    runs, models = str(DATA / "kept_out.jsonl.gz"), str(DATA / "models.jsonl")
    done = asap("accuracy", "backtest", runs, "--models", models, "--format", "json", "--baseline")
    assert done.code == 0, done.err
    ours = json.loads(done.out)
    constant, roofline = ours["baselines"]["constant-mfu"], ours["baselines"]["roofline"]
    keys = {"rows", "predicted", "skipped", "step_time", "by_hardware", "by_source", "what_if", "ranking", "memory"}
    assert keys <= set(ours)
    for rival in (constant, roofline):
        assert ours["step_time"]["macro_median_ape"] < rival["step_time"]["macro_median_ape"]
        assert ours["what_if"]["macro_median_ape"] < rival["what_if"]["macro_median_ape"]
        assert ours["ranking"]["mean_regret"] < rival["ranking"]["mean_regret"]


def test_what_data_was_taken_for_is_said_where_it_could_be_mistaken(asap):
    done = asap("predict", "paper-v6e-16", "--plan", "data=8 tensor=2")
    assert done.code == 0
    assert "data is FSDP here" in done.err
    assert "data = FSDP, model = tensor parallelism" in done.out
    assert "FSDP here" not in asap("predict", "paper-v6e-16", "--plan", "fsdp=8 tensor=2").err


def test_words_of_a_plan_stay_whole_in_a_narrow_terminal():
    from rich.console import Console

    from asap.experiments import ExperimentStore
    from asap.plans import Plan
    from asap.prediction.predict_study import expect
    from asap.reports.predictions import print_predictions
    from asap.study.open_study import open_study

    study = open_study("llama-8b-tensor-16", ExperimentStore(), lambda record: record)
    plan = Plan.parse("data=256 microbatches=1 remat=qkv+context+out+gate+up offload=activations")
    narrow = Console(width=80, file=io.StringIO(), record=True)
    print_predictions(study, expect(study, [plan]), narrow)
    printed = narrow.export_text()
    words = printed.split()
    assert set(str(plan).split()) <= {*words}
    assert "fits" in words
    assert max(map(len, printed.split("axes:")[0].splitlines())) <= 80
