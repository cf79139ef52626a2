import pytest

from asap.core.errors import BadInputError, ConfigError, UsageError
from asap.experiments import Experiment, ExperimentStore, read_configuration
from asap.plans import Plan
from tests.cases import cases, kept

WHOLE = kept(__file__)["WHOLE"]


@pytest.fixture
def read(tmp_path):
    def call(text: str, *overrides: str) -> Experiment:
        path = tmp_path / "experiment.yml"
        path.write_text(text)
        return read_configuration(path, overrides, Experiment(id="x"))

    return call


def test_our_own_file_is_read_with_its_short_forms(read, tmp_path):
    experiment = read(WHOLE)
    assert (experiment.id, experiment.plan) == ("x", Plan.parse("data=16 seq=4 model=8 remat=full"))
    assert (experiment.model.layers, experiment.workload.global_batch) == (80, 256)
    assert experiment.environment == {"jax": "0.10.2"}
    assert experiment.goodput == 0.93
    assert experiment.profile_path == str(tmp_path / "logs" / "run")


def test_the_topology_decides_between_two_readings_of_a_name(read):
    experiment = read(WHOLE)
    assert (experiment.hardware.topology, experiment.hardware.devices) == ((8, 8, 8), 512)
    assert any("256 chips" in note for note in experiment.notes)


def test_values_say_where_they_came_from(read):
    provenance = read(WHOLE, "workload.sequence_length=1024").provenance
    assert provenance["workload.sequence_length"] == "override workload"
    assert (provenance["workload.global_batch"], provenance["plan"]) == ("the launcher", "experiment.yml:7")


def test_a_kept_record_can_be_read_again(tmp_path, read):
    store = ExperimentStore(tmp_path / "store")
    kept = store.add(read(WHOLE))
    again = read_configuration(store.folder / "x.json", [], Experiment(id="x"))
    apart = {"notes": (), "provenance": {}}
    assert again.model_copy(update=apart) == kept.model_copy(update=apart)


@pytest.mark.parametrize("experiment_id", ["paper-v5p-512", "paper-v6e-16", "paper-v5e-256"])
def test_bundled_records_can_be_read_as_files(tmp_path, experiment_id):
    store = ExperimentStore(tmp_path)
    bundled = store.get(experiment_id)
    path = tmp_path / "copy.json"
    path.write_text(bundled.model_dump_json(by_alias=True))
    again = read_configuration(path, [], Experiment(id="copy"))
    assert (again.plan, again.hardware, again.workload) == (bundled.plan, bundled.hardware, bundled.workload)


@cases("text, said")
def test_bad_fields_are_refused_in_one_line(read, text, said):
    with pytest.raises(BadInputError, match=said) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_overrides_replace_single_fields(read):
    experiment = read(WHOLE, "workload.global_batch=512", "plan=data=32 model=16", "description=other")
    assert (experiment.workload.global_batch, experiment.workload.sequence_length) == (512, 8192)
    assert str(experiment.plan) == "data=32 model=16"
    assert experiment.description == "other"


@pytest.mark.parametrize("override", ["plan", "workload.global_batch"])
def test_an_override_without_a_value_is_refused(read, override):
    with pytest.raises(UsageError):
        read(WHOLE, override)


def test_an_unknown_field_of_an_override_is_refused(read):
    with pytest.raises(ConfigError, match="unknown key workloads"):
        read(WHOLE, "workloads.global_batch=3")


def test_no_file_and_no_override_change_nothing():
    experiment = Experiment(id="x")
    assert read_configuration(None, [], experiment) == experiment
