"""A configuration or launch script is analysed as it is, without a record of it."""

import json
import re

import pytest

from tests.cases import cases, kept

SCRIPT = kept(__file__)["SCRIPT"]
ON = ("--hardware", "v5e-64")


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.sh"
    path.write_text(SCRIPT)
    return str(path)


def analysis(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.slow
def test_a_launch_script_is_analysed(asap, script):
    found = analysis(asap("analyze", script, *ON, "--format", "json"))
    assert (found["experiment"]["id"], found["experiment"]["plan"]["ici"]["data"]) == ("train.sh", 64)
    assert found["proposals"]


@pytest.mark.slow
def test_overrides_and_what_is_said_beside_it_win(asap, script):
    arguments = [script, "ici_tensor_parallelism=4", *ON, "--batch", "256", "--sequence", "2048", "--format", "json"]
    record = analysis(asap("analyze", *arguments))["experiment"]
    assert record["plan"]["ici"] | {"data": 16, "model": 4} == record["plan"]["ici"]
    assert (record["workload"]["global_batch"], record["workload"]["sequence_length"]) == (256, 2048)


@pytest.mark.slow
def test_the_report_of_a_file_is_of_its_latest_analysis_and_one_of_the_same_name_elsewhere_has_another(
    asap, script, tmp_path
):
    analysis(asap("analyze", script, *ON, "--format", "json"))
    sessions = asap("sessions", "list").out
    assert asap("report", script, "--html", f"{script}.html").code == 0
    assert asap("sessions", "list").out == sessions
    other = tmp_path / "other" / "train.sh"
    other.parent.mkdir()
    other.write_text(SCRIPT.replace("llama2-7b", "llama2-13b"))
    assert asap("report", str(other), "--html", f"{other}.html").code == 0
    assert "llama2-13b" in other.with_suffix(".sh.html").read_text()


def test_predict_takes_a_file_with_overrides(asap, script):
    done = asap("predict", script, "ici_tensor_parallelism=2", *ON, "--plan", "data=64", "--format", "json")
    assert json.loads(done.out)["incumbent"]["plan"]["ici"]["model"] == 2, done.err
    some = asap("predict", script, *ON, "--plan", "data=64", "--plan", "data=3", "--format", "json")
    assert (len(json.loads(some.out)["predictions"]), "left out: data=3" in some.err) == (1, True)


def test_optimize_takes_a_file(asap, script):
    done = asap("optimize", script, *ON)
    assert done.code == 0, done.err
    assert "paste:" in done.out


def test_verify_takes_a_file(asap, script):
    said = ("--plan", "data=3", "--batch", "256", "--effort", "least")
    done = asap("verify", script, "max_target_length=2048", *ON, *said)
    assert done.code == 4
    assert "multiply to 3 devices, not to 64" in done.err


def test_a_json_configuration_is_no_trace(asap, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}))
    done = asap("predict", str(path), "--hardware", "h100-8")
    assert "trace" not in done.err
    assert "model." in done.err or done.code == 0


@cases("name, text, code, said")
def test_a_file_that_says_too_little_is_told_what_is_missing(asap, tmp_path, name, text, code, said):
    (tmp_path / name).write_text(text)
    done = asap("analyze", str(tmp_path / name), *ON)
    assert (done.code, [words for words in said if words not in done.out + done.err]) == (code, [])


MODEL = kept(__file__)["MODEL"]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(MODEL))
    return str(path)


@pytest.mark.slow
def test_a_model_alone_is_laid_out_from_a_start_that_is_said(asap, model):
    said = [model, "--hardware", "h100-32", "--batch", "256", "--sequence", "8192", "--format", "json"]
    found = analysis(asap("analyze", *said))
    assert found["situation"] == "does_not_fit"
    assert found["experiment"]["provenance"]["plan"] == "assumed, as a start"
    assert any("no plan is on record: data=32" in note for note in found["warnings"])
    assert all(one["prediction"]["memory"]["fits"] for one in found["proposals"])
    whole = ("data=", "microbatches=", "remat=")  # no program is on record whose words they could be
    assert all(key in one["overrides"]["text"] for key in whole for one in found["proposals"])


def test_the_start_is_that_of_what_trains_it(asap, model):
    said = [model, "--hardware", "h100-32", "--batch", "256", "--sequence", "8192", "--format", "json"]

    def now(*more):
        return json.loads(asap("predict", *said[:1], *more, *said[1:]).out)["incumbent"]

    assert now("workload.framework=MaxText")["memory"]["fits"]
    assert not now()["memory"]["fits"]
    assert json.loads(asap("predict", model, "workload.framework=DeepSpeed", *said[1:]).out)["incumbent"] is None


@pytest.mark.slow
def test_the_start_of_megatron_splits_a_model_as_little_as_its_state_needs(asap, model):
    said = ["workload.framework=Megatron-LM", "--hardware", "h100-16", "--batch", "256", "--sequence", "8192"]
    found = analysis(asap("analyze", model, *said, "--format", "json"))
    plan = found["experiment"]["plan"]
    assert (plan["ici"]["model"], plan["ici"]["stage"], plan["remat"]) == (2, 1, "full")
    assert found["experiment"]["provenance"]["plan"] == "assumed, as a start"
    assert any("a distributed optimizer, sequence parallelism, bf16" in note for note in found["warnings"])
    whole = ("--micro-batch-size 1", "--global-batch-size 256", "--seq-length 8192", "--use-distributed-optimizer")
    assert all(words in one["overrides"]["text"] for words in whole for one in found["proposals"])


@pytest.mark.parametrize(("more", "said"), [
    ({"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2},
     "workload.framework=Megatron-LM --hardware h100-64 --batch 256 --sequence 4096"),
    ({}, "--hardware h100-32 --batch 256 --sequence 8192 --step-time 9.5s"),
    ({}, "--hardware h100-32 --batch 12 --sequence 4096"),
], ids=["a mixture under Megatron", "a measured step", "a batch that the chips do not divide"])  # fmt: skip
def test_what_has_no_start(asap, tmp_path, more, said):
    (path := tmp_path / "config.json").write_text(json.dumps(MODEL | more))
    assert json.loads(asap("predict", str(path), *said.split(), "--format", "json").out)["incumbent"] is None


@pytest.mark.slow
def test_where_no_plan_is_known_lines_say_what_is_predicted_and_odds_to_fit_count(asap, tmp_path):
    path = tmp_path / "config.json"
    mixture = {"model_type": "mixtral", "num_local_experts": 64, "num_experts_per_tok": 4}
    path.write_text(json.dumps(MODEL | mixture))
    said = ["workload.framework=Megatron-LM", "--hardware", "h100-128", "--batch", "512", "--sequence", "4096"]
    proposals = analysis(asap("analyze", str(path), *said, "--format", "json"))["proposals"]
    assert len(proposals) > 1
    for one in proposals:
        assert one["plan"]["remat"]
        assert "--micro-batch-size" in one["overrides"]["text"]
        full = "--recompute-granularity full" in one["overrides"]["text"]
        assert full == (one["plan"]["remat"] == "full")
    predicted = [one["prediction"] for one in proposals]
    over_odds = [one["step_time"]["value"] / one["memory"]["probability_fits"] for one in predicted]
    assert over_odds == sorted(over_odds)


@pytest.mark.slow
def test_a_stated_plan_takes_the_place_of_the_start(asap, model):
    said = [model, "--hardware", "h100-32", "--batch", "256", "--sequence", "8192", "--plan", "data=8 model=4"]
    found = analysis(asap("analyze", *said, "--format", "json"))
    assert found["experiment"]["plan"]["ici"]["model"] == 4
    assert not any("no plan is on record" in note for note in found["warnings"])


def test_optimize_takes_all_that_a_model_alone_needs(asap, model):
    said = ["workload.framework=MaxText", "--hardware", "h100-32", "--batch", "256", "--sequence", "8192"]
    done = asap("optimize", model, *said)
    assert done.code == 0, done.err
    assert "ici_fsdp_parallelism" in done.out


MIXTURE = kept(__file__)["MIXTURE"]


@pytest.mark.slow
def test_a_model_that_no_plan_can_hold_is_not_told_to_stay(asap, tmp_path):
    path = tmp_path / "mixture.sh"
    path.write_text(MIXTURE)
    found = analysis(asap("analyze", str(path), "--hardware", "h100-8", "--format", "json"))
    assert found["proposals"] == []
    assert not found["recommendation"]["keep_incumbent"]
    assert "--plan" in found["recommendation"]["statement"]
    assert any("does not divide the 2 devices of a pipeline stage" in note for note in found["warnings"])


@pytest.mark.slow
def test_where_nothing_runs_the_fastest_that_fits_is_first_however_far_from_the_start(asap, model):
    arguments = [model, "--hardware", "v5p-128", "--batch", "512", "--sequence", "8192"]
    found = analysis(asap("analyze", *arguments, "--format", "json"))
    assert found["situation_statement"].startswith("Nothing runs yet: the start is assumed. It does not fit")
    first, *others = (one["prediction"]["step_time"]["value"] for one in found["proposals"])
    assert all(first <= other for other in others)
    of_half = [option["statement"] for option in found["options"] if "1/2 of now" in option["statement"]]
    assert all(first < 1.03 * 2 * float(re.findall(r"step of ([\d.]+) s", said)[0]) for said in of_half)
    report = asap("analyze", *arguments).out
    assert "against the start" in report
    assert "P(faster)" not in report
    assert "runs now" not in report


@pytest.mark.slow
def test_a_line_for_torchtitan_is_whole_where_there_is_no_configuration_to_change(asap, model):
    said = ["workload.framework=torchtitan", "--hardware", "mi300x-32", "--batch", "256", "--sequence", "4096"]
    found = analysis(asap("analyze", model, *said, "--format", "json"))
    assert found["proposals"]
    for one in found["proposals"]:
        assert "data_parallel_shard_degree = " in one["overrides"]["text"]
        assert "local_batch_size = " in one["overrides"]["text"]
        assert "[activation_checkpoint]" in one["overrides"]["text"]


@pytest.mark.slow
def test_a_start_that_nothing_beats_is_advised_with_its_line(asap, tmp_path):
    path = tmp_path / "config.json"
    larger = {"hidden_size": 8192, "intermediate_size": 28672, "num_hidden_layers": 80, "num_attention_heads": 64}
    larger["tie_word_embeddings"] = True  # which torchtitan splits into no stages
    path.write_text(json.dumps(MODEL | larger))
    said = [str(path), "workload.framework=torchtitan", "--hardware", "h100-24", "--batch", "24", "--sequence", "4096"]
    found = analysis(asap("analyze", *said, "--format", "json"))
    assert not found["proposals"]
    statement = found["recommendation"]["statement"]
    assert statement.startswith("Start with the plan that is assumed")
    assert "data_parallel_shard_degree = 24" in statement
    line = json.loads(asap("optimize", *said, "--format", "json").out)["best"]["lines"]
    assert "local_batch_size = 1" in line


MEGATRON = kept(__file__)["MEGATRON"]


def test_another_batch_keeps_the_micro_batch_and_is_in_the_line(asap, tmp_path):
    (path := tmp_path / "run.sh").write_text(MEGATRON)
    said = ["analyze", str(path), "--hardware", "h100-32", "--format", "json"]
    found = analysis(asap(*said, "--batch", "256"))
    assert (found["experiment"]["workload"]["global_batch"], found["experiment"]["plan"]["microbatches"]) == (256, 16)
    assert all("--global-batch-size 256" in one["overrides"]["text"] for one in found["proposals"])
    refused = asap(*said, "--batch", "100")
    assert refused.code == 4
    assert "100 is not a multiple of micro_batch_size 2 x 8" in refused.err


def test_a_batch_that_is_said_takes_the_place_of_one_that_these_devices_cannot_take(asap, tmp_path):
    (path := tmp_path / "run.sh").write_text(MEGATRON.replace("--global-batch-size 64", "--global-batch-size 8"))
    said = ["predict", str(path), "--hardware", "h100-128", "--format", "json"]
    refused = asap(*said)
    assert refused.code == 4
    assert "say --batch N" in refused.err
    assert json.loads(asap(*said, "--batch", "256").out)["incumbent"]["plan"]["microbatches"] == 4


@pytest.mark.parametrize("said", [["--micro-batch-size", "$MBS"], []])
def test_a_micro_batch_that_is_not_said_is_asked(asap, tmp_path, said):
    (path := tmp_path / "run.sh").write_text(MEGATRON.replace("--micro-batch-size 2", " ".join(said)))
    done = asap("predict", str(path), "--hardware", "h100-32")
    assert done.code == 5
    assert "needs the micro-batch" in done.err
    assert "micro_batch_size=" in done.err
    assert asap("predict", str(path), "micro_batch_size=2", "--hardware", "h100-32").code == 0


def test_a_plan_that_is_said_leaves_the_other_settings_as_the_configuration_has_them(asap, tmp_path):
    (path := tmp_path / "run.sh").write_text(MEGATRON.replace("--bf16", "--bf16 --recompute-activations"))
    said = ["analyze", str(path), "--hardware", "h100-32", "--format", "json", "--plan"]
    plan = analysis(asap(*said, "replica=16 model=2"))["experiment"]["plan"]
    assert (plan["ici"]["replica"], plan["remat"], plan["microbatches"]) == (16, "selective", 2)
    plan = analysis(asap(*said, "replica=16 model=2", "--batch", "128"))["experiment"]["plan"]
    assert plan["microbatches"] == 4
    plan = analysis(asap(*said, "replica=16 model=2 remat=full microbatches=4"))["experiment"]["plan"]
    assert (plan["remat"], plan["microbatches"]) == ("full", 4)
