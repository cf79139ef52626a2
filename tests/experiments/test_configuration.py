import contextlib
import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from asap.core.errors import AsapError, ConfigError, NotFoundError, UsageError
from asap.experiments import Experiment, ExperimentStore, read_configuration, refer_to_hardware
from asap.experiments.huggingface_model import MODEL
from asap.experiments.maxtext import TABLE, known_keys
from asap.experiments.record_file import FIELDS
from asap.models import find_architecture
from asap.plans.axes import MESH_NAMES as AXIS_NAMES
from asap.stacks.maxtext.mesh import axis_key
from asap.stacks.maxtext.rematerialisation import TENSORS
from asap.stacks.words import word_keys
from asap.study.open_study import open_study
from tests.cases import cases, kept

KEPT = kept(__file__)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 300)
    | st.sampled_from([10**10, 10**20, 10**40, 1e18, 1e300])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["none", "mla", "fsdp", "activation_batch", "custom", "device", "llama2-7b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
AXES = [axis_key(network, name) for network in ("ici", "dcn") for names in AXIS_NAMES.values() for name in names]
MESH = ["custom_mesh", "custom_mesh_and_rule", "logical_axis_rules", "mesh_axes", "num_slices", "compile_topology"]
MORE = [*MESH, *TENSORS]
MESH_NAMES = st.dictionaries(st.sampled_from([*TABLE.defaults, *AXES, *MORE]), VALUES, max_size=5)
NAMES = [key for words in MODEL.shapes.values() for key in word_keys(*words)]
HUGGING_FACE = st.builds(
    lambda config, kind: {**config, "model_type": kind},
    st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=6),
    st.sampled_from([*MODEL.families, None, 3]),
)
OURS = st.dictionaries(st.sampled_from(sorted(FIELDS)), VALUES, max_size=4)


@pytest.mark.slow
@settings(max_examples=200)
@given(values=MESH_NAMES | HUGGING_FACE | OURS)
def test_whatever_a_file_says_the_answer_is_an_experiment_or_one_clear_line(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("f") / "x.json"
    path.write_text(json.dumps(values))
    hardware, _ = refer_to_hardware("v5e-16")
    with contextlib.suppress(AsapError):
        experiment = read_configuration(path, [], Experiment(id="x", hardware=hardware))
        Experiment.model_validate_json(experiment.model_dump_json(by_alias=True))


def test_defaults_are_known_keys():
    assert set(TABLE.defaults) | set(AXES) <= known_keys()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(NotFoundError):
        read_configuration(tmp_path / "none.yml", [], Experiment(id="x"))


@cases("text")
def test_a_file_of_no_known_kind(tmp_path, text):
    (tmp_path / "x.yml").write_text(text)
    with pytest.raises(ConfigError, match="is no configuration of a stack"):
        read_configuration(tmp_path / "x.yml", [], Experiment(id="x"))


def test_of_a_folder_the_launch_script_is_read_and_what_lies_beside_it_named(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    (tmp_path / "run.sh").write_text("python3 -m MaxText.train MaxText/configs/base.yml model_name=llama2-7b\n")
    study = open_study(str(tmp_path), ExperimentStore(tmp_path / "store"))
    assert study.experiment.model == find_architecture("llama2-7b")
    assert study.experiment.notes[0] == "run.sh is read; of config.json beside it only what it names"
    (tmp_path / "other.sh").write_text("")
    with pytest.raises(UsageError, match=r"other\.sh, run\.sh"):
        open_study(str(tmp_path), ExperimentStore(tmp_path / "store"))


def test_wandb_keeps_arguments_of_the_trainer_beside_the_configuration_of_the_model(tmp_path):
    (path := tmp_path / "config.yaml").write_text(yaml.safe_dump({"_wandb": {"value": {}}} | KEPT["OF_TRAINER"]))
    read = read_configuration(path, (), Experiment(id="run", hardware=refer_to_hardware("h100-8")[0]))
    assert (read.model.layers, read.workload.global_batch, read.workload.zero_stage) == (24, 64, 3)
