"""A run with other settings of its launcher is what its file says with these as overrides."""

from collections import Counter

from asap.answers.inquiry import Inquiry
from asap.answers.registry import ask
from asap.core.errors import AsapError, InsufficientEvidenceError
from asap.experiments import Experiment, read_configuration
from asap.experiments.create import Statement, create_experiment
from asap.experiments.launcher_settings import apply_launcher_settings, key_of_launcher
from asap.study.study import study_of
from tests.cases import cases, kept
from tests.experiments.golden import readings
from tests.experiments.golden.readings import laid_out

FILES = {
    "llama.toml": '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nlocal_batch_size = 4\nseq_len = 4096\n',
    "trl.sh": "trl sft --accelerate_config zero2 --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2\n",
}
SECTION = "TrainingArguments."
CHANGES = kept(__file__)["CHANGES"]


def outcomes(case, folder):
    """Of each change: whether the settings on record are read as the file with the same override is."""
    path, known = laid_out(case, folder), Experiment.model_validate(case["experiment"])
    run = read_configuration(path, case["overrides"], known)
    changes = ((key_of_launcher(run, word), value) for word, value in CHANGES.items()) if run.hyperparameters else ()
    for key, value in changes:
        if key is None:
            continue
        try:
            again = apply_launcher_settings(run, {key: value})
            file = read_configuration(path, (*case["overrides"], f"{key.removeprefix(SECTION)}={value}"), known)
            yield "read" if (again.plan, again.workload) == (file.plan, file.workload) else "other"
        except InsufficientEvidenceError:
            yield "unread"
        except AsapError:
            continue


def test_settings_on_record_are_read_again_as_the_file_with_overrides_is(tmp_path):
    chosen = [
        case for place, case in enumerate(readings.cases()) if place % 24 == 0 and "plan" in case.get("reads", {})
    ]
    found = Counter(one for place, case in enumerate(chosen) for one in outcomes(case, tmp_path / str(place)))
    assert (found["read"] >= 0.9 * found.total(), found["other"] <= 0.02 * found.total()) == (True, True), found


@cases("file, said, batch, plan")
def test_what_if_takes_settings_in_the_words_of_the_launcher(file, said, batch, plan, tmp_path):
    (tmp_path / file).write_text(FILES[file], encoding="utf-8")
    record = create_experiment("run", Statement(hardware="h100-8"), config=tmp_path / file)
    found = ask(Inquiry(study_of(record)), "what_if", plan=said)
    assert found.run.startswith(f"{batch} sequences")
    assert str(found.then.plan).startswith(plan)


@cases("changed, plan")
def test_what_stands_for_a_section_that_is_not_said_follows_when_it_is(changed, plan, tmp_path):
    (tmp_path / "run.yaml").write_text(kept(__file__)["FOUNDRY"], encoding="utf-8")
    record = create_experiment("run", Statement(hardware="h100-8"), config=tmp_path / "run.yaml")
    assert str(record.plan) == "replica=8 microbatches=8 remat=none"
    assert str(apply_launcher_settings(record, changed).plan) == plan
