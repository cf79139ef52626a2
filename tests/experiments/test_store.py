import subprocess
import sys
from pathlib import Path

import pytest

from asap.core.errors import AsapError, ConfigError, NotFoundError, UsageError
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.models import Workload
from asap.plans import Plan
from tests.cases import kept

PAPER = ("paper-v5e-256", "paper-v5p-512", "paper-v6e-16")
BUNDLED = ExperimentStore(Path("nowhere")).ids()


@pytest.fixture
def store(tmp_path):
    return ExperimentStore(tmp_path / "experiments")


def full(experiment_id: str) -> Experiment:
    return Experiment(
        id=experiment_id, workload=Workload(global_batch=256),
        hardware=HardwareReference(name="v5e-256", topology=(16, 16), devices=256),
        plan=Plan.parse("data=64 model=4 dcn.data=2 remat=full"),
        hyperparameters={"learning_rate": 3e-5, "none": None, "list": [1, "x"]}, provenance={"plan": "config.yml"},
    )  # fmt: skip


def test_what_was_added_comes_back(store):
    kept = store.add(full("a.b-C_1"))
    assert kept.created is not None
    assert store.get("a.b-C_1") == kept
    assert store.has("a.b-C_1")


def test_unknown_is_kept_as_unknown(store):
    store.add(Experiment(id="empty"))
    assert (store.get("empty").workload.global_batch, store.get("empty").plan) == (None, None)


def test_a_taken_id_is_refused_unless_replaced(store):
    store.add(full("x"))
    with pytest.raises(UsageError, match="exists"):
        store.add(Experiment(id="x"))
    store.add(Experiment(id="x"), replace=True)
    assert store.get("x").plan is None


@pytest.mark.parametrize("experiment_id", ["paper-v5e-25", "papr-v6e-16", "v5p-512"])
def test_an_unknown_id_names_the_nearest(store, experiment_id):
    with pytest.raises(NotFoundError, match=r"nearest: .*paper-v"):
        store.get(experiment_id)
    with pytest.raises(NotFoundError):
        store.remove(experiment_id)


@pytest.mark.parametrize("experiment_id", ["../x", "a/b", "", ".hidden", "x\n", "x" * 129, "a.facts"])
def test_an_id_that_is_no_file_name_touches_no_path(store, experiment_id):
    assert not store.has(experiment_id)
    with pytest.raises(NotFoundError):
        store.get(experiment_id)


def test_an_id_that_would_collide_with_a_facts_file_is_refused(store):
    with pytest.raises(UsageError):
        store.add(Experiment(id="a.facts"))


def test_removing_forgets_only_that_one(store):
    store.add(full("x"))
    store.add(full("y"))
    store.remove("x")
    assert set(store.ids()) - set(BUNDLED) == {"y"}


def test_the_paper_is_bundled():
    assert set(PAPER) <= set(BUNDLED)


@pytest.mark.parametrize("experiment_id", PAPER)
def test_bundled_experiments_stay(store, experiment_id):
    assert store.get(experiment_id).id == experiment_id
    for attempt in (lambda: store.remove(experiment_id), lambda: store.add(Experiment(id=experiment_id), replace=True)):
        with pytest.raises(UsageError, match="bundled"):
            attempt()


def test_bad_files_are_warnings_of_the_list_and_errors_of_their_own(store):
    store.add(full("good"))
    (store.folder / "garbage.json").write_bytes(b"\xff\xfe\x00")
    (store.folder / "half.json").write_text('{"schema": "asap.experiment/1", "id": "ha')
    (store.folder / "field.json").write_text('{"id": "field", "colour": "red"}')
    (store.folder / "moved.json").write_text('{"id": "other"}')
    (store.folder / "notes.txt").write_text("not ours")
    listing = store.list()
    assert {experiment.id for experiment in listing.experiments} == {"good", *BUNDLED}
    assert len(listing.warnings) == 4
    for name in ("garbage", "half", "field", "moved"):
        assert any(f"{name}.json" in warning for warning in listing.warnings)
        with pytest.raises(ConfigError, match=f"{name}.json"):
            store.get(name)


def test_an_unwritable_folder_is_one_clear_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AsapError, match="ASAP_HOME"):
        ExperimentStore(tmp_path / "file" / "experiments").add(full("x"))


def test_the_home_folder_is_the_default(tmp_path, monkeypatch):
    monkeypatch.setenv("ASAP_HOME", str(tmp_path))
    ExperimentStore().add(full("x"))
    assert (tmp_path / "experiments" / "x.json").is_file()


def test_paths_start_at_the_record_unless_absolute(store, tmp_path):
    relative = store.add(Experiment(id="relative", profile_path="logs/run"))
    absolute = store.add(Experiment(id="absolute", profile_path=str(tmp_path / "p")))
    assert store.resolve(relative).profile == store.folder / "logs/run"
    assert store.resolve(absolute).profile == tmp_path / "p"
    assert store.resolve(relative).facts is None
    for experiment_id in PAPER:
        paths = store.resolve(store.get(experiment_id))
        assert paths.facts.is_file()


ADDER = kept(__file__)["ADDER"]


@pytest.mark.process
def test_processes_that_add_at_once_lose_nothing(store):
    command = [sys.executable, "-c", ADDER, str(store.folder)]
    adders = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in "abc"]
    taken = [int(adder.communicate()[0]) for adder in adders]
    assert sum(taken) == 2 * 20
    assert len(store.list().experiments) == 20 + 3 * 20 + len(BUNDLED)
    assert store.list().warnings == ()
