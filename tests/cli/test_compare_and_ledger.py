import json
import shlex

import pytest

from asap.plans import Plan


@pytest.fixture
def llama(asap, tmp_path):
    """An experiment with a measured step; returns the command that adds one with another plan."""
    config = tmp_path / "train.yml"
    config.write_text("model_name: llama3-8b\nper_device_batch_size: 2\nmax_target_length: 4096\nremat_policy: full\n")

    def add(id, step, *overrides):
        done = asap(
            "experiments", "add", id, *overrides, "--config", str(config), "--hardware", "v5e-64", "--step-time", step
        )
        assert done.code == 0, done.err

    add("now", "4.9s", "ici_tensor_parallelism=4")
    return add


def test_two_runs_side_by_side(asap, llama):
    llama("next", "4.3s")
    done = asap("compare", "now", "next")
    assert done.code == 0, done.err
    assert "-12.2 %" in done.out
    assert "tensor parallelism from 4 to 1" in done.out
    assert "inside the interval" in done.out
    assert json.loads(asap("compare", "now", "next", "--format", "json").out)["schema"] == "asap.comparison/1"


def test_the_ledger_scores_what_was_predicted(asap, llama, monkeypatch, tmp_path):
    assert asap("accuracy", "ledger").out == "0 predictions without an outcome.\n"
    first = json.loads(asap("analyze", "now", "--format", "json").out)["proposals"][0]
    assert "predictions without an outcome" in asap("accuracy", "ledger").out
    llama("next", "4.3s", *shlex.split(first["overrides"]["text"]))
    done = asap("accuracy", "ledger")
    assert "measured: next" in done.out
    assert "1 of 2 measurements inside the 90 % interval" in done.out, (
        "what runs is faster than modelled, and no anchor"
    )
    found = json.loads(asap("accuracy", "ledger", "--format", "json").out)
    assert (found["schema"], found["score"]["measured"]) == ("asap.ledger/1", 2)


def test_what_is_stated_in_a_chat_is_an_outcome(asap, llama):
    llama("wide", "9s", "ici_tensor_parallelism=16", "per_device_batch_size=1")
    proposals = json.loads(asap("analyze", "wide", "--format", "json").out)["proposals"]
    first, second = (Plan.model_validate(proposal["plan"]) for proposal in proposals[:2])
    for said in (f"oom {second}\n", f"ran {first} = 30s\n"):
        assert asap("chat", "wide", typed=said).code == 0
    asap("analyze", "wide")
    score = json.loads(asap("accuracy", "ledger", "--format", "json").out)["score"]
    assert (score["measured"], score["inside"]) == (2, 0)  # and what runs, whose step no prediction started from
    assert (score["memory_verdicts"], score["memory_right"]) == (3, 2)


def test_a_run_without_a_measured_step_is_named_where_a_prediction_needs_it(asap):
    said = " ".join(asap("compare", "llama-8b-tensor-16", "llama-8b-tensor-16").out.split())
    assert "no measured step of llama-8b-tensor-16" in said
