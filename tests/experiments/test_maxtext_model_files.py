"""Models by name: their own file first, then MaxText's, never its default."""

import pytest

from asap.experiments import Experiment, read_configuration, refer_to_hardware
from tests.cases import kept

ACME = kept(__file__)["ACME"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "acme-13b.yml").write_text(ACME)
    return tmp_path


def read(path, *overrides: str, hardware: str | None = "v5e-256") -> Experiment:
    known = {"hardware": refer_to_hardware(hardware)[0]} if hardware else {}
    return read_configuration(path, overrides, Experiment(id="x", **known))


def run(folder, text: str):
    (folder / "run.yml").write_text(text)
    return folder / "run.yml"


def test_the_folder_configs_of_maxtext_is_searched(folder):
    deep = folder / "configs" / "tpu" / "v5e"
    deep.mkdir(parents=True)
    (folder / "models").rename(folder / "configs" / "models")
    assert read(run(deep, "model_name: acme-13b\n")).model.layers == 40
