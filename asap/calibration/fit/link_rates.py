"""What NVLink gives a collective, fitted to NCCL's own measurements: an efficiency for each generation, one ramp."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from asap.hardware.catalogue import find_chip
from asap.prediction.step_model.collectives import SMALL_GROUP, Channel, all_gather, all_reduce, all_to_all
from asap.prediction.step_model.constants import MEASURED_LINKS
from asap.prediction.uncertainty.calibration import Calibration, Constant, Fit

Vector = NDArray[np.float64]
TOLERANCE = 0.1
"""Residual of ln(modelled / measured) from which a collective counts less than its square. Judgement: link rates."""


@dataclass(frozen=True)
class TimedCollective:
    """One collective among GPUs of one node, and its seconds."""

    chip: str
    operation: str
    gpus: int
    size: float
    seconds: float

    def modelled(self, efficiency: float, ramp: float) -> float:
        """Seconds by the law, at this efficiency of the links and this ramp."""
        found = find_chip(self.chip)
        links = found.chip.scaleup if found else None
        assert links is not None, "only chips with NVLink are in the table"
        rate, hop = links.bandwidth * efficiency * (1 - SMALL_GROUP / self.gpus), links.latency
        ring = Channel(self.gpus, rate, (self.gpus - 1) * hop, hop, self.gpus, rate, rate, ramp=ramp)
        law = {"all_reduce": all_reduce, "alltoall": lambda size, ring: all_to_all(size, ring, 0.0)}
        return float(law.get(self.operation, all_gather)(self.size, ring))


@dataclass(frozen=True)
class LinkRates:
    """Sustained share of the links' bandwidth in a large group, by chip, and the seconds of the ramp."""

    efficiency: Mapping[str, float]
    ramp: float


def read_collectives(path: Path) -> list[TimedCollective]:
    """The table ``tests/data/kernels/collectives.tsv``."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [
        TimedCollective(row["chip"], row["operation"], int(row["gpus"]), float(row["bytes"]), float(row["seconds"]))
        for row in csv.DictReader(lines, delimiter="\t")
    ]


def fit_link_rates(timed: Sequence[TimedCollective]) -> LinkRates:
    """The efficiencies and the ramp that meet gathers, scatters and all-to-alls best; the switches of some nodes reduce
    by themselves, which not all runs let them."""
    from scipy.optimize import least_squares

    timed = [one for one in timed if one.operation != "all_reduce"]
    chips = sorted({one.chip for one in timed})

    def residuals(theta: Vector) -> Vector:
        rates = dict(zip(chips, theta[:-1].tolist(), strict=True))
        modelled = [one.modelled(rates[one.chip], float(theta[-1]) * 1e-6) for one in timed]
        return np.log(np.array(modelled) / [one.seconds for one in timed]) / TOLERANCE

    start = np.array([0.8] * len(chips) + [50.0])
    bounds = (np.full(len(start), 0.05), np.array([0.99] * len(chips) + [500.0]))
    found = least_squares(residuals, start, bounds=bounds, loss="soft_l1").x
    rates = {chip: round(float(rate), 4) for chip, rate in zip(chips, found[:-1], strict=True)}
    return LinkRates(rates, round(float(found[-1]) * 1e-6, 8))


def calibrate_links(calibration: Calibration, rates: LinkRates) -> Calibration:
    """The calibration with these rates in all of its fits."""
    fits = {name: _measured(fit, rates) for name, fit in {**calibration.without, "": calibration.full}.items()}
    return calibration.model_copy(update={"full": fits.pop(""), "without": fits})


def _measured(fit: Fit, rates: LinkRates) -> Fit:
    link = fit.constants["link_efficiency"]
    odds = {chip: rates.efficiency[of] / (1 - rates.efficiency[of]) for chip, of in MEASURED_LINKS.items()}
    chips = {chip: round(value * (1 - link.value) / link.value, 4) for chip, value in odds.items()}
    effects = link.effects | {"chip": dict(sorted((link.effects.get("chip", {}) | chips).items()))}
    changed = {"link_efficiency": link.model_copy(update={"effects": effects})}
    return fit.model_copy(
        update={"constants": fit.constants | changed | {"collective_ramp": Constant(value=rates.ramp)}}
    )
