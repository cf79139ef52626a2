import json
import re
import tomllib
from pathlib import Path

import pytest
from ci_scratch import CONFIG, TENSOR

from asap.ci.check import Options
from asap.ci.source.policy import Prices
from asap.ci.source.resolve import LinkedExperiments
from asap.experiments import ExperimentStore
from asap.experiments.create import Statement, create_experiment
from asap.plans import Plan
from tests.cases import cases, kept

pytestmark = pytest.mark.process

TOO_LARGE = CONFIG.replace("remat_policy: full", "remat_policy: minimal").replace("batch_size: 2", "batch_size: 64")
MEASURED_S = 28.0
NEAR = kept(__file__)["NEAR"]
POLICY_OF_ALL = '[ci]\nconfigurations = ["*.toml"]\n[ci.hardware]\n"a.toml" = "h100-8"\n'


def rules(report):
    return [(finding.rule, finding.level) for finding in report.findings]


def test_both_sides_are_predicted_with_intervals(based):
    one = based.change(**{"a.yml": TENSOR}).configurations[0]
    assert (one.before.plan, one.after.plan) == (
        "data=256 microbatches=1 remat=full",
        "data=32 model=8 microbatches=1 remat=full",
    )
    for side in (one.before, one.after):
        for name in ("step_time", "tokens_per_second", "mfu", "chip_hours"):
            quantity = getattr(side.prediction, name)
            assert quantity.low < quantity.value < quantity.high
        assert side.prediction.fit == "fits"
    assert one.relative_cost.low < one.relative_cost.value < one.relative_cost.high
    settings = ["ici_fsdp_parallelism", "ici_tensor_parallelism"]
    assert [change.what for change in one.changes] == ["plan", *settings]


def test_of_a_log_what_it_measured_counts(repo):
    known = tomllib.loads(Path("tests/data/logs/forms.toml").read_text(encoding="utf-8"))["log"]
    log = "GPU 0: NVIDIA H100 80GB HBM3\n" + next(one["text"] for one in known if one["name"] == "megatron-lm 2025")
    repo.commit(**{"run.log": log})
    slower = re.sub(r"(iteration \(ms\): )([\d.]+)", lambda found: f"{found[1]}{1.2 * float(found[2])}", log)
    one = repo.change(**{"run.log": slower}).configurations[0]
    assert one.relative_cost.value == pytest.approx(1.2, rel=0.01)
    assert [change.what for change in one.changes] == ["measured step"]


def test_what_there_was_no_time_for_is_named(repo, monkeypatch):
    monkeypatch.setattr("asap.ci.check.MOST_SECONDS", -1)
    repo.commit(**{"a.yml": CONFIG})
    (note,) = repo.change(**{"a.yml": TENSOR, "b.yml": CONFIG}).notes
    assert note.startswith("2 more changed files were not looked into: the limit is")


def test_chip_hours_are_those_of_the_predicted_throughput(based):
    prediction = based.change(**{"a.yml": TENSOR}).configurations[0].after.prediction
    assert prediction.chip_hours.value == pytest.approx(256 * 1e9 / prediction.tokens_per_second.value / 3600)


@pytest.mark.parametrize("path", ["configs/a.yml", "my configs/a.yml"])
def test_three_proposals_come_with_a_diff_that_git_applies(repo, path):
    repo.commit(**{path: CONFIG})
    aligned = TENSOR.replace("fsdp_parallelism: 32", "fsdp_parallelism:   32   # half  of it\t")
    one = repo.change(**{path: aligned}).configurations[0]
    assert len(one.suggestions) == 3
    for suggestion in one.suggestions:
        repo.write("../change.diff", suggestion.diff + "\n")
        repo.git("apply", "../change.diff")
        again = repo.change().configurations[0]
        assert again.after.plan == suggestion.plan
        repo.git("reset", "-q", "--hard", "HEAD~1")


def test_a_launch_script_is_read_with_its_configuration(repo):
    script = "#!/bin/sh\nFSDP={}\npython3 -m MaxText.train configs/a.yml ici_fsdp_parallelism=$FSDP{} steps=5\n"
    repo.commit(**{"configs/a.yml": CONFIG, "run.sh": script.format(256, "")})
    one = repo.change(**{"run.sh": script.format(64, " ici_tensor_parallelism=4")}).configurations[0]
    assert (one.path, one.line) == ("run.sh", 2)
    assert one.after.plan.startswith("data=64 model=4 ")
    assert "ici_fsdp_parallelism=" in one.suggestions[0].diff


def test_a_changed_configuration_reaches_the_scripts_that_launch_it(repo):
    repo.commit(**{"configs/a.yml": CONFIG, "run.sh": "python3 -m MaxText.train configs/a.yml steps=5\n"})
    found = {one.path: one.status for one in repo.change(**{"configs/a.yml": TENSOR}).configurations}
    assert found == {"configs/a.yml": "modified", "run.sh": "affected"}


def test_our_own_experiment_files_are_read(repo):
    record = (
        'schema: asap.experiment/1\nmodel: llama3.1-70b\nhardware: v5p-512\nplan: "{}"\n'
        "workload: {{global_batch: 512, sequence_length: 8192, precision: bf16}}\n"
    )
    repo.commit(**{"e.yml": record.format("data=256")})
    one = repo.change(**{"e.yml": record.format("data=64 model=4")}).configurations[0]
    assert one.after.plan == "data=64 model=4"
    assert f'+plan: "{one.suggestions[0].plan}"' in one.suggestions[0].diff


@cases("change, reason")
def test_an_invalid_plan_fails_and_says_why(based, change, reason):
    report = based.change(**{"a.yml": CONFIG.replace(*change)})
    assert rules(report)[0] == ("invalid", "error")
    assert reason in report.findings[0].message
    assert "a.yml" not in report.findings[0].message
    assert report.failed


def test_an_invalid_mesh_gets_valid_proposals(based):
    broken = "ici_fsdp_parallelism: 100\nici_tensor_transpose_parallelism: 3"
    one = based.change(**{"a.yml": CONFIG.replace("ici_fsdp_parallelism: 256", broken)}).configurations[0]
    assert one.after.problem
    suggestion = one.suggestions[0]
    assert suggestion.step_time.value > 0
    assert (suggestion.title, suggestion.reasons) == (suggestion.plan, ())
    based.write("../change.diff", suggestion.diff + "\n")
    based.git("apply", "../change.diff")
    again = based.change().configurations[0].after
    proposed = Plan.parse(suggestion.plan)
    assert str(proposed.remat) == "full"
    assert (again.problem, again.plan) == (None, str(proposed.model_copy(update={"microbatches": 1})))


def test_a_plan_that_does_not_fit_fails(based):
    report = based.change(**{"a.yml": TOO_LARGE})
    assert ("out_of_memory", "error") in rules(report)
    assert report.configurations[0].after.prediction.fit == "does not fit"
    assert "Keep what you have" not in report.configurations[0].recommendation


def test_the_policy_is_that_of_the_base_commit(repo):
    policy = '[ci]\nout_of_memory = "warn"\nregression_percent = 1\n'
    repo.commit(**{"a.yml": CONFIG, "asap.toml": policy})
    report = repo.change(**{"a.yml": TOO_LARGE, "asap.toml": '[ci]\nout_of_memory = "ignore"\n'})
    assert ("out_of_memory", "warning") in rules(report)
    assert not report.failed


def test_prices_give_money_a_day_and_a_budget_is_held(repo):
    policy = "[ci.prices]\ncurrency = 'EUR'\nchips = {v5p = 2.0}\n[ci.budget]\nmoney_per_day = 1000\n"
    repo.commit(**{"a.yml": CONFIG, "asap.toml": policy})
    report = repo.change(**{"a.yml": TENSOR})
    side = report.configurations[0].after
    assert (side.prediction.money_per_day.value, side.prediction.money_per_day.unit) == (256 * 24 * 2.0, "EUR")
    assert side.prediction.money.value == pytest.approx(2.0 * side.prediction.chip_hours.value)
    assert ("budget", "error") in rules(report)


def test_what_may_fit_is_a_warning_with_its_odds_and_what_it_changes(repo):
    repo.commit(**{"a.toml": NEAR, "asap.toml": POLICY_OF_ALL})
    report = repo.change(**{"a.toml": NEAR.replace("size = 1", "size = 2"), "asap.toml": f"{POLICY_OF_ALL}\n# later"})
    (one,) = report.configurations
    assert (one.path, one.after.prediction.fit) == ("a.toml", "may not fit")
    assert one.relative_cost is not None
    (finding,) = report.findings
    assert (finding.level, "likely to fit" in finding.message) == ("warning", True)


def test_a_changed_model_is_not_called_a_regression(repo):
    repo.commit(**{"a.yml": CONFIG.replace("llama3.1-70b", "llama3.1-8b")})
    one = repo.change(Options(prices=Prices(chips={"v5p": 1.0})), **{"a.yml": CONFIG}).configurations[0]
    assert one.relative_cost is None
    assert {"model layers", "model d model"} <= {change.what for change in one.changes}


def test_a_changed_batch_or_hardware_is_compared_by_the_token(based):
    report = based.change(**{"a.yml": CONFIG.replace("batch_size: 2", "batch_size: 4")})
    one = report.configurations[0]
    assert "batch" in [change.what for change in one.changes]
    assert one.relative_cost.low < 1 < one.relative_cost.high
    assert report.findings == ()


@pytest.fixture
def measured(tmp_path):
    """A store with the run of CONFIG, as it was measured."""
    folder = tmp_path / "records"
    folder.mkdir()
    (tmp_path / "run.yml").write_text(CONFIG)
    (folder / "llama70.facts.json").write_text(
        json.dumps({"source": "a test", "stated": True, "kpis": {"step_time_s": MEASURED_S}})
    )
    record = create_experiment("llama70", Statement(), config=tmp_path / "run.yml")
    store = ExperimentStore(folder)
    store.add(record.model_copy(update={"facts_path": "llama70.facts.json"}))
    return store


def test_a_measured_run_anchors_the_prediction(based, measured):
    one = based.change(experiments=LinkedExperiments(measured), **{"a.yml": TENSOR}).configurations[0]
    assert one.experiment == "llama70"
    assert one.before.prediction.step_time.value == pytest.approx(MEASURED_S)
    assert one.after.prediction.from_profile
    ratio = one.after.prediction.step_time.value / MEASURED_S
    assert one.relative_cost.value == pytest.approx(ratio)


def test_another_batch_is_not_anchored_at_a_measured_run(repo, measured):
    repo.commit(**{"a.yml": CONFIG.replace("batch_size: 2", "batch_size: 4")})
    new = TENSOR.replace("batch_size: 2", "batch_size: 4")
    one = repo.change(experiments=LinkedExperiments(measured), **{"a.yml": new}).configurations[0]
    assert one.experiment == "llama70"
    assert not one.after.prediction.from_profile


def test_hardware_that_a_configuration_leaves_out_is_that_of_its_experiment(repo, measured):
    bare = CONFIG.replace("compile_topology: v5p-512\n", "")
    repo.commit(**{"a.yml": bare})
    one = repo.change(
        experiments=LinkedExperiments(measured), **{"a.yml": TENSOR.replace("compile_topology: v5p-512\n", "")}
    )
    one = one.configurations[0]
    assert one.after.prediction is not None
    assert any("Hardware taken from experiment llama70" in note for note in one.notes)


def test_a_record_of_the_repository_does_not_open_a_profile_outside_of_it(repo, measured, tmp_path):
    record = measured.get("llama70").model_copy(update={"facts_path": "../../secret.json"})
    (tmp_path / "secret.json").write_text('{"source": "SECRET", "kpis": {}}')
    repo.commit(**{"a.yml": CONFIG, "records/llama70.json": record.model_dump_json(by_alias=True)})
    experiments = LinkedExperiments(ExperimentStore(repo.folder / "records"), repo.folder)
    one = repo.change(experiments=experiments, **{"a.yml": TENSOR}).configurations[0]
    assert one.experiment is None
    assert any("outside the repository" in note for note in one.notes)


@pytest.fixture
def failed(tmp_path, monkeypatch):
    """Two records of the same failure."""
    from asap.history import HistoryRecord, Source, add
    from asap.plans import Plan

    monkeypatch.setenv("ASAP_HOME", str(tmp_path / "home"))
    for number in range(2):
        add(
            HistoryRecord(
                id=f"failed-{number}", title="Tensor parallelism on v5p",
                model={"name": "llama3.1-70b", "parameters": 70.6e9}, hardware={"chip": "v5p", "devices": 256},
                before=Plan.parse("data=256"), after=Plan.parse("data=32 model=8"), outcome="slower",
                speedup=0.7 - number / 10, summary="It was slower.", source=Source(text="a test"), confidence=0.95,
            )
        )  # fmt: skip


def test_a_known_failure_is_told(based, failed):
    report = based.change(**{"a.yml": TENSOR})
    precedent = report.configurations[0].precedent
    assert precedent.id.startswith("failed-")
    assert precedent.supports.startswith("The same move was slower (0.")
    assert ("repeated_failure", "warning") in rules(report)


def test_a_move_that_only_resembles_a_failure_is_not_called_the_same(based, failed):
    other = TENSOR.replace("tensor_parallelism: 8", "tensor_parallelism: 4\nici_context_parallelism: 2")
    precedent = based.change(**{"a.yml": other}).configurations[0].precedent
    assert precedent.supports.startswith("A move of a similar direction, data=256 to data=32 model=8, was slower")


OTHER_STACKS = kept(__file__)["OTHER_STACKS"]


@pytest.mark.parametrize(("path", "text"), OTHER_STACKS.items())
def test_a_proposal_for_any_stack_is_a_diff_that_keeps_the_rest_of_the_file(repo, path, text):
    policy = '[ci.hardware]\n"*" = "h100-32"\n'
    repo.commit(**{path: text.format(10), "asap.toml": policy})
    one = repo.change(**{path: text.format(20)}).configurations[0]
    changes = [suggestion for suggestion in one.suggestions if suggestion.diff]
    assert changes
    for suggestion in changes:
        repo.write("../change.diff", suggestion.diff + "\n")
        repo.git("apply", "../change.diff")
        assert repo.change().configurations[0].after.plan == suggestion.plan
        kept = [line.partition("#")[2] for line in text.splitlines() if "#" in line]
        assert all(comment in (repo.folder / path).read_text() for comment in kept)
        repo.git("reset", "-q", "--hard", "HEAD~1")
