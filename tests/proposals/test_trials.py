import re

import pytest
from rich.console import Console

from asap.experiments.create import Statement, create_experiment
from asap.optimize.by_model import optimize_by_model
from asap.optimize.table import print_report
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.trials import trials_of
from asap.stacks.launchers import setting_lines
from asap.study.study import study_of
from tests.cases import kept
from tests.experiments.stack_configurations import MIXTURE

SMALL = kept(__file__)["SMALL"]


@pytest.fixture
def study(tmp_path):
    def read(said, hardware):
        script = tmp_path / "run.sh"
        script.write_text(f"{said}\n", encoding="utf-8")
        return study_of(create_experiment("run", Statement(hardware=hardware), config=script))

    return read


@pytest.fixture
def offered(study):
    return lambda said: trials_of(study(said, "h100-64"))


def test_a_step_that_waits_for_its_host_is_told_to_test_cuda_graphs_before_any_plan(study):
    waiting = study(SMALL, "h100-8")
    (graphs,) = trials_of(waiting)
    assert graphs.line.startswith("--cuda-graph-impl local  # cuda-graph-impl since Megatron Core 0.15.0")
    assert graphs.gain is not None
    assert graphs.gain > 0.3
    advised = propose(rank_candidates(waiting), lambda study, plan: ())
    assert advised.situation.name == "improvable"
    assert graphs.title in advised.situation.statement
    assert graphs.title in advised.recommendation.statement


def test_optimize_by_the_model_names_the_test_that_the_report_names(study):
    found = optimize_by_model(study(SMALL, "h100-8"))
    (graphs,) = found.trials
    assert graphs.title in found.learnt[0]
    assert "Keep what you have" not in "".join(found.learnt)
    console = Console(width=200, record=True)
    print_report(found, console)
    assert re.search(r"worth a test:.*\n +--cuda-graph-impl local", console.export_text(), re.DOTALL)


def test_what_saves_less_than_steps_vary_by_is_no_test(study):
    large = SMALL.replace("--hidden-size 512", "--hidden-size 4096").replace("1024 --micro", "4096 --micro")
    large += " --use-distributed-optimizer"
    assert not trials_of(study(large.replace("--num-attention-heads 8", "--num-attention-heads 32"), "h100-8"))


def test_what_cuda_graphs_bring_a_mixture_of_experts_is_modelled(offered):
    (graphs,) = offered(MIXTURE)
    relative = graphs.relative_step_time
    assert relative.low < relative.value < relative.high
    assert 0.5 < relative.value < 0.95
    assert not offered(f"{MIXTURE} --cuda-graph-impl local")
    recomputed = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
    assert not offered(f"{MIXTURE} {recomputed}")


LARGE = kept(__file__)["LARGE"]


def test_tensor_collectives_beside_their_products_are_worth_a_test_where_they_wait(offered):
    overlap = next(trial for trial in offered(LARGE) if trial.name == "tensor_overlap")
    assert overlap.line == "--tp-comm-overlap"
    assert overlap.gain is not None
    assert 0.03 < overlap.gain < 0.3


@pytest.mark.parametrize("said", [
    LARGE.replace(" --sequence-parallel", ""), f"{LARGE} --tp-comm-overlap", f"{LARGE} --deterministic-mode",
    f"{LARGE} --transformer-impl local",
    LARGE.replace("--tensor-model-parallel-size 8", "--tensor-model-parallel-size 16"),
    f"{LARGE} --num-experts 8 --expert-model-parallel-size 8",
])  # fmt: skip
def test_the_test_is_not_offered_where_megatron_would_not_overlap(offered, said):
    assert "tensor_overlap" not in [trial.name for trial in offered(said)]


NESTED = "modules:\n  m:\n    overrides:\n      cuda_graph_impl: local"


@pytest.mark.parametrize(("stack", "given", "settings", "line"), [
    ("megatron", {}, {"cuda-graph-modules": "attn moe_router"}, "--cuda-graph-modules attn moe_router"),
    ("megatron", {"primus_module": "m"}, {"cuda-graph-impl": "local"}, NESTED),
    ("torchtitan", {}, {"training.compile": "true"}, "[training]\ncompile = true"),
    ("deepspeed", {}, {"bf16.enabled": "true"}, '{"bf16": {"enabled": true}}'),
    ("maxtext", {}, {"attention": "flash"}, "attention=flash"),
])  # fmt: skip
def test_a_setting_is_written_in_the_form_that_was_given(stack, given, settings, line):
    assert setting_lines(stack, settings, given) == line
