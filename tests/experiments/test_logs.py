"""Training logs: each form of line and block, whatever cuts, colours, packs or repeats it."""

import json
import re
import tomllib
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from asap.core.errors import AsapError, ConfigError, UsageError
from asap.core.limits import FILE_LIMITS
from asap.core.units import Provenance
from asap.experiments import ExperimentStore, configuration
from asap.experiments.configuration import read_configuration, read_untrusted
from asap.experiments.create import Statement, create_experiment
from asap.experiments.experiment import Experiment, refer_to_hardware
from asap.experiments.logs import text as texts
from asap.experiments.logs.checks import contradictions
from asap.experiments.logs.read import is_log, read_log
from asap.experiments.logs.settings import settings_of
from asap.experiments.observed import MeasuredStep
from asap.models import Workload
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.study.open_study import open_study
from asap.study.study import outcome_of_log, study_of
from tests.cases import cases, kept

KEPT = kept(__file__)
LOGS = Path(__file__).parents[1] / "data" / "logs"
TABLES = [tomllib.loads((LOGS / name).read_text(encoding="utf-8")) for name in ("forms.toml", "public.toml")]
FORMS = [form for table in TABLES for form in table["log"]]
KNOWN = {form["name"]: form for form in FORMS}
MEGATRON = KNOWN["megatron-lm 2025"]["text"]


def record(path: Path, *overrides: str) -> Experiment:
    return read_configuration(path, overrides, Experiment(id="run"))


def said(path: Path) -> dict:
    reading = read_log(path)
    step = reading.measured.step.median
    found = settings_of(reading).model_dump(exclude_none=True)
    return {"stack": reading.stack, "settings": found, "step": step and round(step, 4), "ending": reading.ending.kind}


@pytest.mark.parametrize("form", FORMS, ids=[form["name"] for form in FORMS])
def test_each_form_is_read(form, write):
    reading = read_log(path := write(form["text"]))
    assert reading.stack == form.get("stack")
    settings = settings_of(reading).model_dump()
    settings["data"] = settings["data"] or settings_of(reading).data_parallel
    assert {key: settings[key] for key in form["settings"]} == form["settings"]
    given = settings | {"step": reading.measured.step.median}
    assert [key for key in form.get("unknown", ()) if given[key] is not None] == []
    assert (reading.ending.kind, reading.runs) == (form["ending"], form.get("runs", 1))
    measured, ending, gib = reading.measured, reading.ending, 2**30
    assert "step" not in form or measured.step.median == pytest.approx(form["step"], rel=0.002)
    assert "slow" not in form or [one.step for one in measured.step.slow] == form["slow"]
    assert "memory_gib" not in form or (measured.peak_memory_bytes or 0) == pytest.approx(form["memory_gib"] * gib)
    assert "tflops" not in form or measured.tflops_per_device == pytest.approx(form["tflops"])
    assert form.get("hardware") in (None, reading.hardware.chip)
    if "needed_gib" in form:
        needed = ending.needed_bytes or (ending.in_use_bytes or 0) + (ending.requested_bytes or 0)
        assert needed == pytest.approx(form["needed_gib"] * gib, rel=0.001)
    if "refused" in form:
        with pytest.raises(ConfigError, match=form["refused"]) as caught:
            record(path)
        assert caught.value.hint
        return
    assert contradictions(reading, settings_of(reading), found := record(path)) == {}
    assert str(found.plan).startswith(form.get("plan", ""))
    assert found.observed.ending.kind == form["ending"]
    assert [name for name in form.get("unrecorded", ()) if getattr(found.workload, name) is not None] == []
    assert [form.get(key, "\n") in "; ".join(found.notes) for key in ("note", "unsaid")] == ["note" in form, False]
    assert "plan" not in form or (found.model.layers and form.get("padded", found.model.vocab) == found.model.vocab)
    assert not {"plan", "step"} <= {*form} or found.measured.seconds == pytest.approx(form["step"], rel=0.002)


def test_what_xla_says_of_the_program_is_its_memory_where_no_peak_is_measured():
    on_one = Experiment(id="run", hardware=refer_to_hardware("h100-1")[0])
    outcome = outcome_of_log(read_configuration(LOGS / "maxtext_h100.log", (), on_one))
    assert (outcome.peak_bytes, outcome.provenance) == (pytest.approx(41.9 * 2**30), Provenance.COMPILED)


@pytest.mark.parametrize("form", FORMS, ids=[form["name"] for form in FORMS])
@pytest.mark.parametrize("size", [700, 4096])
def test_pieces_of_a_log_or_another_start_do_not_change_what_it_says(form, size, write, monkeypatch):
    path = write(form["text"])
    whole = said(path)
    monkeypatch.setattr(texts, "CHUNK", size)
    assert said(path) == whole
    assert form.get("cut") or said(write(f"{form['text'].rstrip()}\n{form['text']}")) == whole


@pytest.mark.parametrize(("length", "least"), [(1000, FILE_LIMITS.seconds), (2 << 30, 4 * FILE_LIMITS.seconds)])
def test_a_longer_log_may_take_longer_to_read(length, least, write, monkeypatch):
    monkeypatch.setattr(configuration, "within", lambda limits, read, where: limits.seconds)
    with (path := write("")).open("ab") as log:
        log.truncate(length)  # zeros that lie on no disk
    assert least <= read_untrusted(path, (), Experiment(id="run")) < 100 * least


@pytest.mark.parametrize(("text", "what"), [("", "is empty"), ("\n \n", "is empty"), (bytes(range(256)), "is binary")])
def test_what_is_no_text_is_said_to_be_none(text, what, write):
    with pytest.raises(ConfigError, match=what):
        record(write(text))


@cases("name, head, row")
def test_metrics_that_a_tracker_exports_are_steps(name, head, row, tmp_path):
    times = ((step, datetime(2026, 1, 1) + timedelta(seconds=0.51 * step)) for step in range(1, 60))
    (tmp_path / name).write_text("\n".join([head, *(row.format(*each) for each in times)]))
    assert record(tmp_path / name).measured.seconds == pytest.approx(0.51)
    for said, table in (
        ("of several runs", "Step,a - step_time,b - step_time"),
        ("no column", "model,batch,step_time"),
    ):
        (tmp_path / "other.csv").write_text(f"{table}\n1,0.5,0.6\n2,0.5,0.6\n")
        with pytest.raises(ConfigError, match=said):
            record(tmp_path / "other.csv")


def test_of_a_folder_the_log_is_read_that_says_most_of_a_run_and_named(tmp_path):
    ranks = tmp_path / "outputs" / "logs"
    ranks.mkdir(parents=True)
    for rank in range(9):
        (ranks / f"rank{rank}.log").write_text(MEGATRON if rank == 4 else "ready\n")
    (tmp_path / "run.sh").write_text("python3 -m MaxText.train MaxText/configs/base.yml model_name=llama2-7b\n")
    found = open_study(str(tmp_path), ExperimentStore(tmp_path / "store")).experiment
    assert found.measured.seconds == pytest.approx(2.105)
    assert found.notes[0] == "outputs/logs/rank4.log is read, of 9 logs in the folder"


@cases("name, text, seconds")
def test_a_log_of_the_model_beside_it_is_of_training_all_its_parameters(name, text, seconds, tmp_path):
    model = {"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    (tmp_path / "config.json").write_text(json.dumps(model | {"intermediate_size": 11008, "vocab_size": 32000}))
    bar = "" if name.endswith(".json") else KNOWN["a trainer that does not say what it trains"]["text"]
    (tmp_path / name).write_text(text + bar)
    found = open_study(str(tmp_path), ExperimentStore(tmp_path / "store")).experiment
    assert found.model.layers == 32
    assert (found.measured and found.measured.seconds) == seconds
    assert any("parameters that are trained" in note for note in found.notes) is (seconds is None)
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    assert record(tmp_path / name).workload.adapter_rank


@pytest.mark.parametrize(("flavor", "copies"), [("1.7B", 1), ("1.7B", 2), ("8B", 1)])
def test_a_log_without_its_model_takes_the_only_configuration_beside_it_unless_they_differ(tmp_path, flavor, copies):
    (tmp_path / "train.log").write_bytes((LOGS / "torchtitan_h100_none.log").read_bytes())
    text = f"model = {{name = 'qwen3', flavor = '{flavor}'}}\n[training]\nlocal_batch_size = 2\nseq_len = 4096\n"
    for number in range(copies):
        (tmp_path / f"run{number}.toml").write_text(text)
    found = open_study(str(tmp_path), ExperimentStore(tmp_path / "store")).experiment
    taken = (flavor, copies) == ("1.7B", 1)
    assert (found.measured is None, found.model and found.model.layers) == (False, 28 if taken else None)
    assert ("run0.toml" in found.notes[0]) is taken


def test_no_secret_of_the_settings_reaches_the_record_and_an_override_wins_over_them_or_is_refused(write):
    found = record(write(MEGATRON), "global_batch_size=256")
    assert ("0123456789abcdef" in found.model_dump_json(), found.workload.global_batch) == (False, 256)
    with pytest.raises(UsageError, match="override: unknown key remat"):
        record(LOGS / "maxtext_h100.log", "remat=full")


def test_a_block_that_is_cut_is_said_to_be(write):
    found = record(write(MEGATRON[: MEGATRON.index("  seq_length")]), "workload.sequence_length=4096")
    assert (any("are cut" in note for note in found.notes), found.workload.sequence_length) == (True, 4096)


def test_of_two_blocks_that_differ_the_later_counts(write):
    begin, end = MEGATRON.index("------------------------ arg"), MEGATRON.index("> building")
    reading = read_log(write(MEGATRON[:end] + MEGATRON[begin:end].replace("... 128", "... 64") + MEGATRON[end:]))
    assert any("the later ones are read" in note for note in reading.notes)
    assert reading.blocks[0].values["global_batch_size"] == 64


@pytest.mark.parametrize(("count", "devices"), [(16, 16), (4, None), (1024, None)], ids=["job", "host", "cut"])
def test_a_list_of_tpus_counts_where_it_is_that_of_the_whole_job(count, devices, write):
    one = "TpuDevice(id={0}, process_index={1}, coords=(0,0,0), core_on_chip=0)"
    listed = ", ".join(one.format(n, n // 4) for n in range(count))
    found = read_log(write(f"TPU v6 lite\nDevices: [{listed}]\ncompleted step: 8, seconds: 2.51\n")).hardware
    assert (found.chip, found.devices) == ("v6e", devices)


def test_the_slowest_steps_are_listed_and_the_rest_counted(write):
    settings = KNOWN["maxtext 2025, enumerations"]["text"].partition("completed step")[0]
    lines = [f"completed step: {n}, seconds: {9 if n % 10 == 9 else 1}.0, loss: 8.0" for n in range(100)]
    note = next(note for note in record(write(settings + "\n".join(lines))).notes if "slow steps" in note)
    assert (note.count("(step"), note[-10:]) == (5, "and 5 more")


def test_of_very_many_steps_parts_are_read_and_nothing_that_stands_once_is_lost(write):
    lines = [f"step: {n}  loss:  8.1  memory: 62.1GiB(77%)  tps: {8000 + n % 9}\n" for n in range(200_000)]
    lines[90_000] += "Model llama3 8B size: 8,030,261,248 total parameters\n"
    reading = read_log(write("".join([*lines, "CUDA out of memory. Tried to allocate 2 GiB\n"])))
    assert (reading.ending.kind, reading.statements["parameters"]) == ("out_of_memory", "8030261248")
    assert (reading.runs, reading.measured.tokens_per_second_per_device) == (1, pytest.approx(8004, abs=1))


def test_what_is_free_tells_what_was_needed(write):
    failed = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB"
    free = "GPU 0 has a total capacity of 79.25 GiB of which 1.10 GiB is free. Process 7 has 78.14 GiB memory in use."
    for line, said in ((f"{failed}. {free}", "needs at least 80.7 GiB of 79.2 GiB"), (failed, "allocating 2.50 GiB")):
        assert said in str(read_log(write(f"{line}\n")).ending)


@cases("line, network, variables")
def test_the_network_that_nccl_takes_and_the_variables_that_it_finds_are_read(line, network, variables, write):
    path = write(f"node-a:1:2 [0] NCCL INFO {line}\n{MEGATRON}")
    assert record(path).environment == variables
    assert read_log(path).hardware.network == network
    assert any("the fabric is not in use" in note for note in record(path).notes) == (network == "Socket")


def test_a_batch_that_is_smaller_than_what_is_taken_at_once_is_asked(write):
    text = "Instantaneous batch size per device = 28\nGradient Accumulation steps = 1\n"
    text += KNOWN["a trainer that does not say what it trains"]["text"]
    assert any("give the batch" in note for note in record(write(text)).notes)


def test_a_log_is_known_by_its_name_or_by_what_it_holds(write):
    assert is_log(write(text := MEGATRON, "slurm-1234"))
    assert not is_log(write("#SBATCH --nodes 2\nsrun python train.py\n", "job"))
    assert not any(is_log(write(text, name)) for name in ("train.yaml", "train.sh", "model.json"))
    kept = next(form["text"] for form in FORMS if "trainer_log.jsonl" in form["name"])
    assert (is_log(write(kept, "a.jsonl")), is_log(write('{"prompt": "a"}\n', "b.jsonl"))) == (True, False)


@pytest.mark.parametrize("form", [form for form in FORMS if "script" in form], ids=lambda form: form["name"])
def test_the_same_run_by_its_script_and_by_its_log(form, write):
    file, hardware, script = form["script"]
    start = Experiment(id="run", hardware=refer_to_hardware(hardware)[0])
    by_script = read_configuration(write(script, file), (), start)
    by_log = read_configuration(write(form["text"]), (), start)
    assert (by_log.plan, by_log.workload.tokens) == (by_script.plan, by_script.workload.tokens)
    of_work = ("global_batch", "sequence_length", "precision")
    shapes = ("layers", "d_model", "heads", "kv_heads", "d_ff")
    assert [getattr(by_log.workload, one) for one in of_work] == [getattr(by_script.workload, one) for one in of_work]
    assert [getattr(by_log.model, one) for one in shapes] == [getattr(by_script.model, one) for one in shapes]


CROSSED = KEPT["CROSSED"]


@pytest.mark.parametrize("factor", [2, 8, 1000])
@pytest.mark.parametrize(
    ("name", "before"), [(name, one) for name, several in CROSSED.items() for one in several.split("|")]
)
def test_a_number_that_the_rest_of_a_log_does_not_make_is_named(name, before, factor, write):
    """Of what contradicts itself no step is taken, and the user is asked."""
    times = lambda found: f"{found[1]}{float(found[2].replace(',', '')) * factor:.15g}"  # noqa: E731
    text, changed = re.subn(rf"({before})([\d,.]+\d|\d)", times, KNOWN[name]["text"])
    found = record(write(text))
    assert (changed > 0, "contradicts itself" in found.notes[0], found.measured) == (True, True, None)


HOSTILE = {
    "zeros": "\x00" * 4096, "one line": "=" * 200_000, "brackets": "{" * 50_000, "calls": "Config(" * 20_000,
    "blank lines": "Config(" + "\n" * 200_000, "a prefix above blank lines": "\n0: x" + "\n" * 400_000,
    "many arguments": "arguments ---\n" + "a .... b\n" * 30_000, "dashes": "\n" + "-" * 200_000 + " arguments -",
    "prefixes": "\n" + "0: " * 70_000 + "x",
    "references": "\na: &a [1, 2]\n" + "".join(f"b{n}: &b{n} [*a, *a]\n" for n in range(2000)),
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_text_is_no_run(text, write):
    with pytest.raises(ConfigError):
        record(write("Running with configs: " + text))


def test_the_largest_tensors_that_xla_lists_are_read_once_with_shape_and_operation(write):
    ending = read_log(write(KEPT["LARGEST"])).ending
    assert (ending.kind, ending.needed_bytes) == ("out_of_memory", 63.8 * 2**30)
    assert [str(one) for one in ending.largest] == [
        "2.00 GiB f32[32,4096,4096] of jit(train_step)/attention/dot_general",
        "512 MiB bf16[16,2048,8192] of jit(train_step)/mlp/w1/dot_general",
    ]


@cases("hardware, batch, taken")
def test_what_another_run_measured_is_not_taken_for_the_one_that_is_said(hardware, batch, taken):
    said = Experiment(id="run", hardware=refer_to_hardware(hardware)[0], workload=Workload(global_batch=batch))
    found = read_configuration(LOGS / "torchtitan_h100.log", (), said)
    assert (found.measured is not None, any("is not taken" in note for note in found.notes)) == (taken, not taken)


SAID = {"global_batch": 64, "sequence_length": 1024, "hardware": "h100-8"}


@pytest.mark.parametrize(
    "name", ["llama-recipes, its bar and memory", "composer 0.12: batch and sequence by its rates"]
)
def test_what_a_log_lacks_is_asked_for_at_once_and_then_it_is_analysed(name, write):
    path = write(KNOWN[name]["text"])
    with pytest.raises(AsapError) as asked:
        rank_candidates(study_of(create_experiment("run", Statement(), config=path)))
    options = {"global_batch": "--batch", "sequence_length": "--sequence", "hardware": "--hardware"}
    said = {field: SAID[field] for field, option in options.items() if option in asked.value.hint}
    said |= {"hardware": "h100-2"} if name.startswith("composer") else {}
    model = ("model=gpt2",) if "model=NAME" in asked.value.hint else ()
    run = create_experiment("run", Statement(**said), config=path, overrides=model)
    found = propose(rank_candidates(study_of(run)), lambda *_: ())
    least = min(one.prediction.step_time.value for one in found.proposals)
    fast = run.model_copy(update={"measured": MeasuredStep(seconds=0.9 * least, source="a log")})
    with pytest.raises(AsapError, match="every plan as modelled at least"):
        rank_candidates(study_of(fast))
