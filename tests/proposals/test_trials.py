import re

import pytest

from asap.experiments.create import Statement, create_experiment
from asap.proposals.trials import OfferedTrial, trials_of
from asap.study.study import study_of

MIXTURE = (
    "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 32"
    " --seq-length 4096 --max-position-embeddings 4096 --num-experts 64 --moe-router-topk 8 --moe-ffn-hidden-size 768"
    " --ffn-hidden-size 6144 --expert-model-parallel-size 8 --micro-batch-size 1 --global-batch-size 256 --bf16"
    " --swiglu --vocab-size 151936 --use-distributed-optimizer --use-mcore-models"
)


@pytest.fixture
def offered(tmp_path):
    def read(said):
        script = tmp_path / "moe.sh"
        script.write_text(f"{said}\n", encoding="utf-8")
        return trials_of(study_of(create_experiment("moe", Statement(hardware="h100-64"), config=script)))

    return read


def test_what_cuda_graphs_bring_a_mixture_of_experts_is_modelled(offered):
    (graphs,) = offered(MIXTURE)
    found = re.search(r"takes ([\d.]+) (m?s) with it and ([\d.]+) (m?s) without", graphs.statement)
    assert found is not None
    with_it, without = (float(found[at]) * (1 if found[at + 1] == "s" else 1e-3) for at in (1, 3))
    assert 0.5 * without < with_it < 0.95 * without
    assert not offered(f"{MIXTURE} --cuda-graph-impl local")


def test_a_line_for_megatron_separates_what_an_option_takes_by_spaces():
    settings = {"cuda-graph-impl": "transformer_engine", "cuda-graph-modules": "attn moe_router"}
    trial = OfferedTrial(name="cuda_graphs", statement="", source="", stack="megatron", settings=settings)
    assert trial.line == "--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router"
