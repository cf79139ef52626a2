import json

import pytest

from tests.cases import cases
from tests.cli.conftest import DECODER

MAXTEXT = f"run_name: a-run{DECODER}ici_fsdp_parallelism: -1\nici_tensor_parallelism: 4\n"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "train config.yml"
    path.write_text(MAXTEXT)
    return str(path)


def test_a_maxtext_configuration_becomes_a_record(asap, config):
    said = ("ici_tensor_parallelism=2", "max_target_length=1024", "--hardware", "v5e-16")
    done = asap("experiments", "add", "mine", "--config", config, *said)
    assert done.code == 0, done.err
    record = json.loads(asap("experiments", "show", "mine", "--format", "json").out)
    assert record["plan"]["ici"] == {"replica": 1, "data": 8, "seq": 1, "model": 2, "expert": 1, "stage": 1}
    assert (record["workload"]["global_batch"], record["model"]["layers"]) == (32, 32)
    assert record["provenance"]["workload.sequence_length"].startswith("override")
    shown = asap("experiments", "show", "mine", "--all").out
    assert "model.layers" in shown
    assert "override" in shown


def test_experiments_are_listed_and_removed(asap):
    assert asap("experiments", "add", "mine", "--hardware", "v5e-16", "--plan", "data=16").code == 0
    assert "mine" in asap("experiments", "list").out
    assert asap("experiments", "remove", "mine").code == 0
    listed = json.loads(asap("experiments", "list", "--format", "json").out)
    assert {"paper-v5p-512", "paper-v6e-16", "paper-v5e-256", "cpu-8dev"} <= {entry["id"] for entry in listed}
    assert "mine" not in {entry["id"] for entry in listed}


def test_what_the_user_says_wins_and_is_marked(asap, config):
    said = ["--plan", "data=4 model=4", "--batch", "64", "--sequence", "4096", "--goodput", "0.9"]
    assert asap("experiments", "add", "mine", "--config", config, "--hardware", "v5e-16", *said).code == 0
    record = json.loads(asap("experiments", "show", "mine", "--format", "json").out)
    assert (record["plan"]["ici"]["data"], record["workload"]["global_batch"]) == (4, 64)
    assert (record["goodput"], record["provenance"]["plan"]) == (0.9, "stated by the user")


def test_an_id_is_taken_once(asap):
    assert asap("experiments", "add", "x").code == 0
    again = asap("experiments", "add", "x")
    assert again.code == 2
    assert "exists" in again.err
    assert asap("experiments", "add", "x", "--replace").code == 0


def test_a_name_with_two_readings_says_both(asap):
    done = asap("experiments", "add", "x", "--hardware", "v5p-512", "--topology", "8x8x8")
    assert done.code == 0
    assert "256 chips" in done.err
    assert "512 chips" in done.err
    assert json.loads(asap("experiments", "show", "x", "--format", "json").out)["hardware"]["devices"] == 512


def test_a_record_is_one_screen(asap, config):
    arguments = ["--config", config, "--hardware", "v5e-16", "--description", "\x1b[31mred\u202e"]
    assert asap("experiments", "add", "mine", *arguments).code == 0
    shown = asap("experiments", "show", "mine").out
    assert len(shown.splitlines()) < 25
    for words in (
        "v5e-16, 4x4, 16 devices",
        "8.03 B parameters",
        "262,144 tokens per step",
        "FSDP 4, tensor parallelism 4",
    ):
        assert words in shown
    assert "ici_tensor_parallelism: 4" in shown
    assert "measured step: predictions start from the architecture" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown


def test_a_record_fits_into_80_columns(asap, config):
    from rich.console import Console

    from asap.experiments import ExperimentStore
    from asap.reports.record import print_record

    assert asap("experiments", "add", "mine", "--config", config, "--hardware", "v5e-16").code == 0
    console = Console(width=80, record=True, file=None)
    with console.capture() as printed:
        print_record(ExperimentStore().get("mine"), console)
    assert max(map(len, printed.get().splitlines())) <= 80
    assert len(printed.get().splitlines()) <= 24


@cases("name, text, words")
def test_a_record_has_the_words_of_the_program_that_runs(asap, tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    assert asap("experiments", "add", "mine", "--config", str(tmp_path / name), "--hardware", "h100-8").code == 0
    shown = asap("experiments", "show", "mine")
    assert shown.code == 0
    assert words in " ".join(shown.out.split())


def test_what_an_empty_record_costs_is_said(asap):
    assert asap("experiments", "add", "empty").code == 0
    shown = asap("experiments", "show", "empty").out
    assert "hardware: no prediction" in shown
    assert "model: predictions by ratios of a profile only" in shown


def test_proposals_in_the_words_of_the_stack(asap, tmp_path):
    path = tmp_path / "llama3.toml"
    path.write_text('[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 2\nseq_len = 8192\n')
    assert asap("experiments", "add", "titan", "--config", str(path), "--hardware", "h100-16").code == 0
    report = asap("analyze", "titan", "--format", "markdown").out
    assert "[training]\n" in report
    assert "ici_" not in report
    data = json.loads(asap("analyze", "titan", "--format", "json").out)
    said = [one["overrides"]["stack"] for one in data["proposals"] if one["overrides"]["lines"]]
    assert said == ["torchtitan"] * len(data["proposals"])
