"""The laws of products, attention and collectives against NVIDIA's tables of measured kernels.

None is fitted to them but the rates of links.
"""

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from asap.calibration.fit.link_rates import fit_link_rates, read_collectives
from asap.hardware.names import resolve_hardware
from asap.models import Architecture, Workload
from asap.plans import Plan
from asap.prediction.step_model.compute import compute, matmul_seconds
from asap.prediction.step_model.encoding import step_inputs
from asap.prediction.step_model.groups import Groups
from asap.prediction.uncertainty.calibration import load_calibration

KERNELS = Path(__file__).parents[1] / "data" / "kernels"
WORK = Workload(global_batch=1, sequence_length=4096, precision="bf16", framework="Megatron-Core")
MODEL = Architecture(layers=32, d_model=4096, d_ff=14336, heads=32, kv_heads=8, head_dim=128, vocab=32000)
WITHIN = 0.1


def rows(name: str) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = defaultdict(list)
    text = (KERNELS / name).read_text().splitlines()
    for row in csv.DictReader((line for line in text if not line.startswith("#")), delimiter="\t"):
        found[row.pop("chip")].append({key: float(value) for key, value in row.items()})
    return found


def inputs_on(chip: str, model: Architecture = MODEL, work: Workload = WORK):
    hardware = resolve_hardware(f"{ {'a100': 'a100-80gb'}.get(chip, chip) }-1").slice
    constants = load_calibration().full.resolve_one(Groups.of(hardware, work))
    return step_inputs([Plan.parse("remat=none")], model, work, hardware), constants


def spread(ratios: list[float]) -> tuple[float, float]:
    """The usual ratio of measured over modelled, and how far others lie from it."""
    usual = float(np.median(ratios))
    return usual, float(np.median(np.abs(np.array(ratios) / usual - 1)))


@pytest.mark.parametrize("chip", ["a100", "h100", "h200", "b200"])
def test_products_of_all_shapes_follow_one_law(chip):
    inputs, constants = inputs_on(chip)
    ratios = [
        row["seconds"] / float(np.sum(matmul_seconds(inputs, constants, row["m"], row["n"], row["k"])))
        for row in rows("gemm.tsv")[chip]
    ]
    usual, apart = spread(ratios)
    assert apart <= WITHIN
    assert 0.7 <= usual <= 1.1, "alone a product is at most as slow as within a step"


@pytest.mark.parametrize("chip", ["a100", "h100"])
def test_attention_of_long_sequences_follows_one_law(chip):
    ratios = []
    for row in rows("attention.tsv")[chip]:
        if row["length"] >= 2048:
            update = {"heads": int(row["heads"]), "kv_heads": int(row["kv_heads"])}
            work = WORK.model_copy(
                update={"global_batch": int(row["sequences"]), "sequence_length": int(row["length"])}
            )
            inputs, constants = inputs_on(chip, MODEL.model_copy(update=update), work)
            forward = float(np.sum(compute(inputs, constants).layer_attention)) / 3.5
            ratios.append(row["seconds"] / forward)
    assert spread(ratios)[1] <= WITHIN


@pytest.mark.parametrize(("chip", "within"), [("a100", WITHIN), ("h100", WITHIN), ("b200", 0.13)])
def test_collectives_of_each_size_and_group_follow_one_law(chip, within):
    timed = read_collectives(KERNELS / "collectives.tsv")
    rates = fit_link_rates(timed)
    ratios = [one.seconds / one.modelled(rates.efficiency[chip], rates.ramp) for one in timed if one.chip == chip]
    assert np.median(np.abs(np.array(ratios) - 1)) <= within


@pytest.mark.parametrize("chip", ["a100", "h100", "b200"])
def test_the_bundled_rates_of_links_are_those_of_the_tables(chip):
    rates = fit_link_rates(read_collectives(KERNELS / "collectives.tsv"))
    _, constants = inputs_on(chip)
    assert constants.link_efficiency == pytest.approx(rates.efficiency[chip], rel=1e-3)
    assert constants.collective_ramp == pytest.approx(rates.ramp, rel=1e-3)
