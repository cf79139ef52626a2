import pytest

from asap.core.errors import PlanError
from asap.core.provenance import Provenance
from asap.core.units import GIB
from asap.experiments import Experiment, ExperimentStore, HardwareReference
from asap.mapping.check import check
from asap.mapping.language.parse import parse
from asap.mapping.policies import layers_by_policy
from asap.models import Workload, find_architecture
from asap.optimize.codes import Code
from asap.optimize.feedback import feedback
from asap.optimize.outcome import Outcome, Suggestion, Try
from asap.optimize.programs import is_program, launched, read
from asap.optimize.proposers.by_tensor import ByTensor
from asap.plans import Plan, Remat
from asap.study.open_study import reopen_study

PLAN = "data=16 remat=save_dot_except_mlp"


class OnePlan:
    """Proposes one plan."""

    def propose(self, tries):
        return None if tries else Suggestion(configuration=PLAN, why="the only one")


@pytest.fixture
def study(home):
    record = Experiment(
        id="dense", model=find_architecture("llama3-8b"), plan=Plan.parse(PLAN),
        workload=Workload(global_batch=32, sequence_length=2048, framework="MaxText", precision="bf16"),
        hardware=HardwareReference(name="v5e-16", chip="v5e", topology=(4, 4), devices=16),
    )  # fmt: skip
    return reopen_study(record, ExperimentStore())


def outcome(target, configuration, of_a_layer, saves=0.005):
    """What a compiler might say: each layer that keeps more saves time and takes HBM; no split saves anything."""
    program = read(configuration)[1]
    layers = layers_by_policy(program, target, Remat.FULL).get(Remat.MINIMAL, 0) if program else 0
    held = (13.6 + of_a_layer * layers) * GIB
    if held > 15.75 * GIB:
        return Outcome(status="rejected", provenance=Provenance.COMPILED, feedback=(feedback(Code.OUT_OF_MEMORY),))
    return Outcome(
        status="done", step_time_s=1.8 - saves * layers, hbm_bytes=held, provenance=Provenance.COMPILED
    )  # fmt: skip


def played(proposer, of_a_layer, most=20, saves=0.005):
    tries = []
    while len(tries) < most and (found := proposer.propose(tries)) is not None:
        said = outcome(proposer.target, found.configuration, of_a_layer, saves)
        tries.append(
            Try(number=len(tries) + 1, configuration=found.configuration, why=found.why, predicted=found.predicted,
                outcome=said)
        )  # fmt: skip
    return tries


@pytest.mark.parametrize(("of_a_layer", "fit"), [(0.1, 21), (0.5, 4), (3.0, 0)])
def test_as_many_layers_keep_more_as_fit(study, of_a_layer, fit):
    tries = played(ByTensor.of(study, OnePlan(), 1), of_a_layer, most=8)
    assert tries[0].configuration == PLAN
    done = [each for each in tries if each.outcome.status == "done"]
    kept = max(round((1.8 - each.outcome.step_time_s) / 0.005) for each in done)
    assert fit - 2 <= kept <= fit


def test_no_more_layers_keep_more_where_that_is_no_faster(study):
    tries = played(ByTensor.of(study, OnePlan(), 1), 0.1, saves=-0.003)
    assert sum("minimal" in each.configuration for each in tries) == 1
    assert len(tries) > 2


def test_what_layers_keep_is_predicted_and_so_are_splits_the_best_first(study):
    _, layers, *rest = played(ByTensor.of(study, OnePlan(), 1), 0.2)
    assert layers.configuration.startswith("mesh data=16\nremat save_dot_except_mlp\nremat minimal in layers 0..")
    assert layers.predicted.low_s < layers.outcome.step_time_s < layers.predicted.high_s
    splits = [each for each in rest if "shard" in each.configuration]
    order = [each.predicted.step_time_s for each in splits]
    assert order == sorted(order)
    assert any("shard gate, up, down by hidden over data" in each.configuration for each in splits)


def test_every_program_passes_the_checks_and_none_is_tried_twice(study):
    proposer = ByTensor.of(study, OnePlan(), 1)
    tries = played(proposer, 0.2, most=40)
    assert len(tries) < 40
    assert len({each.configuration for each in tries}) == len(tries)
    for each in tries[1:]:
        assert is_program(each.configuration)
        assert check(each.configuration, proposer.target, proposer.hardware).feedback == ()


def test_maxtext_gets_rules_for_tensors_and_none_for_layers(study):
    line = launched(study, parse("mesh data=16\nremat full\nshard head, embedding by embed over none")[0]).maxtext
    assert line is not None
    assert line.endswith("\"logical_axis_rules=[['embed_vocab', []]]\"")
    with pytest.raises(PlanError, match="remat"):
        launched(study, parse("mesh data=16\nremat full\nremat minimal in layers 0..3")[0])
