import math
from dataclasses import replace

from asap.hardware import resolve_hardware
from asap.models import Architecture, Workload
from asap.models.catalogue import find_architecture
from asap.plans import Plan
from asap.prediction.from_architecture import Measured, predict
from asap.prediction.step_model.groups import Groups
from asap.prediction.uncertainty.calibration import doubtful_groups, load_calibration, unseen_groups
from tests.cases import cases

PLAN = Plan.parse("data=8 microbatches=1 remat=full")


def test_the_unseen_is_named():
    region = load_calibration().full.region
    known = Groups(chip="h100", framework="megatron", precision="bf16", kernel=None, vendor="nvidia")
    strange = Groups(chip="abacus", framework="clay", precision="int8", kernel=None, vendor="sumer")
    assert unseen_groups(region, known) == ()
    assert unseen_groups(region, strange) == ("chip", "vendor", "framework", "precision")
    assert doubtful_groups(region, known, mixture=False) == ()
    assert doubtful_groups(region, replace(known, framework="fsdp"), mixture=False) == ("code",)
    apart = replace(known, chip="mi355x", vendor="amd", framework="maxtext")
    assert [doubtful_groups(region, apart, mixture=kind) for kind in (True, False)] == [(), ("together",)]


def decoder() -> Architecture:
    found = find_architecture("llama-2-7b")
    assert found is not None
    return found


def workload(framework: str) -> Workload:
    return Workload(global_batch=64, sequence_length=4096, precision="bf16", framework=framework)


def half_width(framework: str, hardware: str = "h100") -> float:
    (found,) = predict(PLAN, decoder(), workload(framework), resolve_hardware(hardware, devices=8).slice)
    step = found.step_time
    return math.log(step.high / step.value)


@cases("wider, known")
def test_a_class_of_many_codes_and_unknown_chips_are_predicted_with_less_certainty(wider, known):
    assert half_width(*wider) > 1.3 * half_width(known)


def test_a_wide_interval_says_why():
    (found,) = predict(PLAN, decoder(), workload("PyTorch FSDP"), resolve_hardware("h100", devices=8).slice)
    assert any("software of this kind" in note and "--step-time" in note for note in found.notes)
    (measured,) = predict(
        PLAN, decoder(), workload("PyTorch FSDP"), resolve_hardware("h100", devices=8).slice,
        baseline=Measured(PLAN, 9.0),
    )  # fmt: skip
    assert not any("interval is wide" in note for note in measured.notes)
