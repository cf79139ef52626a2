"""Changes of configurations of other stacks than MaxText, with the files that they need beside them."""

import json

import pytest

from asap.ci.check import Options
from asap.ci.render.comment import headline, to_comment
from asap.ci.source import selection
from asap.ci.source.policy import Policy
from tests.cases import cases, kept

KEPT = kept(__file__)

pytestmark = pytest.mark.process

ON = Policy(configurations=("configs/*",), hardware={"configs/*": "h100-64"})
MEGATRON = KEPT["MEGATRON"]
TUNING = KEPT["TUNING"]
STAGE_3 = kept(__file__)["STAGE_3"]
PRIMUS = KEPT["PRIMUS"]
OPEN = kept(__file__)["OPEN"]


def changed(repo, path, before, after, **beside):
    repo.commit(**{path: before, **beside})
    [one] = repo.change(Options(policy=ON), **{path: after}).configurations
    return one


def test_a_script_of_megatron(repo):
    one = changed(repo, "configs/train.sh", MEGATRON.format(tensor=1), MEGATRON.format(tensor=8))
    assert (one.before.plan.split()[0], one.after.plan.split()[1]) == ("replica=64", "model=8")
    assert one.after.prediction.step_time.value > 0
    assert any(suggestion.overrides.startswith("--tensor-model-parallel-size") for suggestion in one.suggestions)


def test_a_script_that_its_reader_refuses_is_listed_with_the_reason(repo):
    wrong = MEGATRON.replace("--nodes=8", "--nodes=1 --gpus-per-node=8")
    build = "steps: [{name: docker}]\nimages: [a]\n"
    repo.commit(**{"configs/train.sh": wrong.format(tensor=3), "build.yml": build})
    after = {"configs/train.sh": wrong.format(tensor=5), "build.yml": build.replace("docker", "podman")}
    [one] = repo.change(**after).configurations
    assert one.path == "configs/train.sh"
    assert "5" in one.after.problem


def test_another_batch_and_a_vocabulary_that_is_padded_are_compared_as_one_run(repo):
    before = MEGATRON.format(tensor=4)
    after = MEGATRON.format(tensor=8).replace("128256", "128300").replace("size 256", "size 512")
    one = changed(repo, "configs/train.sh", before, after)
    assert {"batch", "vocab_size"} <= {change.what for change in one.changes}
    sides = [side.prediction.chip_hours for side in (one.before, one.after)]
    apart = (sides[1].high / sides[0].low) / (sides[1].low / sides[0].high)
    assert one.relative_cost.value == pytest.approx(sides[1].value / sides[0].value, rel=0.02)
    assert one.relative_cost.high / one.relative_cost.low < apart


def test_the_deepspeed_configuration_that_a_file_names(repo):
    beside = {"examples/deepspeed/stage3.json": json.dumps(STAGE_3)}
    one = changed(repo, "configs/tune.yaml", TUNING.format(batch=1), TUNING.format(batch=2), **beside)
    assert one.after.plan.startswith("data=64")
    [first, *_] = one.suggestions
    assert "disable_gradient_checkpointing: true" in first.overrides.splitlines()


def test_yaml_of_primus(repo):
    one = changed(repo, "configs/run.yaml", PRIMUS.format(tensor=2), PRIMUS.format(tensor=8))
    assert one.after.plan.startswith("replica=8 model=8")
    assert one.suggestions[0].overrides.splitlines()[:3] == ["modules:", "  pre_trainer:", "    overrides:"]


def test_a_batch_that_a_variable_would_have_to_say_is_unknown(repo):
    one = changed(repo, "configs/run.sh", OPEN.format(data=64), OPEN.format(data=32) + " ici_tensor_parallelism=2")
    assert one.after.prediction is None or one.after.prediction.step_time is None
    assert "sets per_device_batch_size by a variable" in str(one.not_checked)


@pytest.mark.parametrize(("path", "before", "after", "setting"), [
    ("train.sh", MEGATRON.format(tensor=1), MEGATRON.format(tensor=8), "plan"),
    ("tune.yaml", TUNING.format(batch=1), TUNING.format(batch=2), "per_device_train_batch_size"),
])  # fmt: skip
def test_a_configuration_of_another_stack_is_found_by_itself(repo, path, before, after, setting):
    repo.commit(**{path: before, "examples/deepspeed/stage3.json": json.dumps(STAGE_3)})
    report = repo.change(Options(policy=Policy(hardware={"*": "h100-64"})), **{path: after})
    [one] = report.configurations
    assert setting in " ".join(change.what for change in one.changes)
    unchanged = to_comment(report).partition("Unchanged: ")[2].partition("\n")[0]
    same = any(part.startswith("batch ") for part in unchanged.split("; "))
    assert same == (one.before.batch == one.after.batch)


def test_what_is_not_read_is_not_checked_and_never_passes(repo):
    repo.commit(**{"run.sh": OPEN.format(data=64)})
    report = repo.change(
        Options(policy=Policy(hardware={"*": "v5e-64"})), **{"run.sh": OPEN.format(data=64) + "echo done\n"}
    )
    [one] = report.configurations
    comment = to_comment(report)
    assert one.not_checked
    assert "not checked" in comment
    assert "passes" not in comment
    assert "Unchanged" not in comment


def test_the_headline_says_first_that_a_run_does_not_fit(repo):
    larger = MEGATRON.format(tensor=1).replace("--seq-length 8192", "--seq-length 131072")
    repo.commit(**{"configs/train.sh": MEGATRON.format(tensor=1)})
    report = repo.change(Options(policy=ON), **{"configs/train.sh": larger})
    assert headline(report).startswith("1 configuration changed, 1 does not fit")


def test_a_file_that_a_configuration_names_changes_that_configuration(repo):
    repo.commit(**{"tune.yaml": TUNING.format(batch=1), "examples/deepspeed/stage3.json": json.dumps(STAGE_3)})
    stage_2 = json.dumps({**STAGE_3, "zero_optimization": {"stage": 2}})
    report = repo.change(
        Options(policy=Policy(hardware={"*": "h100-64"})), **{"examples/deepspeed/stage3.json": stage_2}
    )
    [one] = report.configurations
    assert (one.path, one.status) == ("tune.yaml", "affected")
    assert "zero_optimization.stage" in {change.what for change in one.changes}


def test_what_changes_no_prediction_is_listed_as_well_and_nothing_twice(repo):
    text = TUNING.replace("deepspeed: examples/deepspeed/stage3.json", "fsdp: full_shard auto_wrap")
    rows = ((1, "1.0e-5", "a"), (2, "3.0e-6", "b"))
    before, after = (
        f"{text.format(batch=n)}learning_rate: {rate}\nhub_token: hf_{key * 34}\n" for n, rate, key in rows
    )
    one = changed(repo, "configs/tune.yaml", before, after)
    named = [each.what.rpartition(".")[2] for each in one.changes]
    assert (named.count("learning_rate"), named.count("per_device_train_batch_size")) == (1, 1)
    assert "hf_" not in one.model_dump_json()
    one = changed(repo, "configs/train.sh", MEGATRON.format(tensor=1) + "# a\n", MEGATRON.format(tensor=1) + "# b\n")
    assert one.changes == ()
    assert one.not_checked
    command = MEGATRON.format(tensor=1).replace("--bf16", "--bf16 --lr 1e-4")
    one = changed(repo, "configs/train.sh", command, command.replace("1e-4", "2e-4"))
    assert [(each.what, each.before, each.after) for each in one.changes] == [("lr", "1e-4", "2e-4")]


@cases("script, old, new, changes")
def test_settings_on_one_line_are_compared_one_by_one(repo, script, old, new, changes):
    one = changed(repo, "configs/run.sh", script, script.replace(old, new))
    found = [[each.what, each.before, each.after] for each in one.changes if each.what != "batch"]
    assert found == changes


def test_a_file_that_another_names_is_read_within_limits(repo, monkeypatch):
    script = "accelerate launch --config_file zero3.yaml sft.py --model_name_or_path Qwen/Qwen2.5-1.5B --bf16\n"
    part = "distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\nnum_processes: "
    repo.commit(**{"run.sh": script, "zero3.yaml": f"{part}8\n"})
    limited, open_limits = selection.within, list[bool]()
    monkeypatch.setattr(selection, "within", lambda *it: (open_limits.append(True), limited(*it), open_limits.pop())[1])
    read = selection.read_configuration
    monkeypatch.setattr(selection, "read_configuration", lambda *it: read(*it) if open_limits else pytest.fail("free"))
    assert [one.path for one in repo.change(**{"zero3.yaml": f"{part}4\n"}).configurations] == ["run.sh"]
