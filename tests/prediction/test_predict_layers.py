from functools import partial

import pytest

from asap.compiler.reference.expressible import mapping_target
from asap.hardware import resolve_hardware
from asap.mapping.language.parse import parse
from asap.mapping.plan_program import layers_by_policy
from asap.models import Workload, find_architecture
from asap.plans import Plan, Remat
from asap.prediction.from_architecture import predict, predict_layers

MODEL = find_architecture("llama3-8b")
WORKLOAD = Workload(global_batch=32, sequence_length=2048, framework="MaxText", precision="bf16")
SLICE = resolve_hardware("v5e:4x4").slice
PREDICT = partial(predict, architecture=MODEL, workload=WORKLOAD, hardware=SLICE)


def predicted(plan):
    (found,) = predict(Plan.parse(plan), MODEL, WORKLOAD, SLICE)
    return found


def test_layers_that_keep_more_lie_between_the_two_plans():
    few, many = predicted("data=16 remat=full"), predicted("data=16 remat=minimal")
    found = predict_layers(few.plan, {Remat.FULL: 24, Remat.MINIMAL: 8}, PREDICT)
    assert found.step_time.value == pytest.approx(0.75 * few.step_time.value + 0.25 * many.step_time.value)
    assert found.memory.total.value == pytest.approx(0.75 * few.memory.total.value + 0.25 * many.memory.total.value)
    assert few.memory.probability_fits > found.memory.probability_fits > many.memory.probability_fits
    assert "full in 24 and minimal in 8 of 32 layers" in found.notes[0]


def test_layers_that_are_all_alike_are_the_plan():
    plan = predicted("data=16 remat=full")
    assert predict_layers(plan.plan, {Remat.FULL: 32}, PREDICT) == plan


def test_the_layers_of_each_policy_are_counted():
    program = parse("mesh data=16\nremat none in layers 2..5\nremat minimal in layers 4")[0]
    counted = layers_by_policy(program, mapping_target(MODEL), Remat.FULL)
    assert counted == {Remat.NONE: 3, Remat.MINIMAL: 1, Remat.FULL: 28}
