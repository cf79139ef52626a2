import re

import pytest

from asap.experiments.create import Statement, create_experiment
from asap.proposals.trials import OfferedTrial, trials_of
from asap.study.study import study_of
from tests.experiments.stack_configurations import MIXTURE


@pytest.fixture
def offered(tmp_path):
    def read(said):
        script = tmp_path / "moe.sh"
        script.write_text(f"{said}\n", encoding="utf-8")
        return trials_of(study_of(create_experiment("moe", Statement(hardware="h100-64"), config=script)))

    return read


def test_what_cuda_graphs_bring_a_mixture_of_experts_is_modelled(offered):
    (graphs,) = offered(MIXTURE)
    found = re.search(r"modelled, the step takes ([\d.]+) % less time with it", graphs.statement)
    assert found is not None
    assert 5 < float(found[1]) < 50
    assert not offered(f"{MIXTURE} --cuda-graph-impl local")


def test_a_line_for_megatron_separates_what_an_option_takes_by_spaces():
    settings = {"cuda-graph-impl": "transformer_engine", "cuda-graph-modules": "attn moe_router"}
    trial = OfferedTrial(name="cuda_graphs", statement="", source="", stack="megatron", settings=settings)
    assert trial.line == "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router"
