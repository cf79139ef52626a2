"""How alike a past run and the present one are, feature by feature, for all records at once.

A feature is 1 where both agree, 0 where they are as different as can be, and :data:`NEUTRAL` where either is unknown:
what is not known speaks neither for nor against. The weights are a judgement, in the order of what decides whether a
change carries over: what holds the run back, what it runs on, how it is laid out, how large the model is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from asap.diagnosis import Bottleneck
from asap.hardware import Chip, find_chip
from asap.history.query import NEUTRAL, HistoryQuery
from asap.history.record import HistoryRecord
from asap.plans import AXES, Plan

WEIGHTS = {"bottleneck": 0.25, "chip": 0.20, "plan": 0.20, "size": 0.15, "scale": 0.10, "bound": 0.05, "text": 0.05}
_LAST_DOUBLING = 4.0
"""Devices or parameters that differ by a factor of 16 are as different as can be, and so are plans with that many
doublings moved between axes on either side."""
_OTHER_CHIP = 0.9
_OTHER_WIRING = 0.75
_Scores = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureTable:
    """Records by column; what is unknown is an empty string or NaN."""

    records: tuple[HistoryRecord, ...]
    rows: dict[str, int]
    bottleneck: NDArray[np.str_]
    bound: NDArray[np.str_]
    chip: NDArray[np.str_]
    devices: _Scores
    parameters: _Scores
    plans: _Scores

    @classmethod
    def of(cls, records: Sequence[HistoryRecord]) -> "FeatureTable":
        """Columns of some records."""
        return cls(
            records=tuple(records),
            rows={record.id: row for row, record in enumerate(records)},
            bottleneck=np.array([_known_bottleneck(record.bottleneck) for record in records], dtype=np.str_),
            bound=np.array([_known_bound(record.bound) for record in records], dtype=np.str_),
            chip=np.array([record.hardware.chip or record.hardware.name or "" for record in records], dtype=np.str_),
            devices=_doublings([record.devices for record in records]),
            parameters=_doublings([record.model.parameters for record in records]),
            plans=np.array([_layout(record.before) for record in records], dtype=float).reshape(-1, len(AXES)),
        )

    def column(self, values: Mapping[str, float]) -> _Scores:
        """Values by record ID as a column, 0 where there is none."""
        column = np.zeros(len(self.records))
        for record_id, value in values.items():
            column[self.rows[record_id]] = value
        return column

    def compare(self, query: HistoryQuery, text: _Scores | None) -> dict[str, _Scores]:
        """Each feature's likeness by record, NaN where either side is unknown; ``text`` is given, 0 to 1."""
        unknown = np.full(len(self.records), np.nan)
        moved = np.abs(self.plans - _layout(query.plan)).sum(axis=1) / 2
        return {
            "bottleneck": _equal(self.bottleneck, _known_bottleneck(query.bottleneck)),
            "chip": self._chips(query.chip),
            "plan": _falling(moved),
            "size": _falling(np.abs(self.parameters - _doublings([query.parameters]))),
            "scale": _falling(np.abs(self.devices - _doublings([query.scale]))),
            "bound": _equal(self.bound, _known_bound(query.bound)),
            "text": unknown if text is None else text,
        }

    def _chips(self, name: str | None) -> _Scores:
        names, positions = np.unique(self.chip, return_inverse=True)
        likeness = [chip_likeness(name, str(other)) if name and other else np.nan for other in names]
        return np.array(likeness, dtype=float)[positions] if len(names) else np.empty(0)


def similarity(features: dict[str, _Scores]) -> _Scores:
    """Weighted mean of the features, 0 to 1; :data:`NEUTRAL` where nothing is known."""
    weighted = (WEIGHTS[name] * np.where(np.isnan(values), NEUTRAL, values) for name, values in features.items())
    return reduce(np.add, weighted)


def chip_likeness(one: str, other: str) -> float:
    """How alike two chips are by peak, bandwidth and wiring; NaN if one is unknown and the names differ."""
    first, second = find_chip(one), find_chip(other)
    if first is None or second is None:
        return 1.0 if one.casefold() == other.casefold() else float("nan")
    return _likeness(first.chip, second.chip)


def _likeness(one: Chip, other: Chip) -> float:
    if one.name == other.name:
        return 1.0
    if one.kind != other.kind:
        return 0.0
    ratios = [one.hbm_bandwidth / other.hbm_bandwidth, one.hbm_bytes / other.hbm_bytes]
    ratios += [one.peak_flops[kind] / other.peak_flops[kind] for kind in ("bf16", "fp16") if _both(one, other, kind)][
        :1
    ]
    distance = float(np.mean(np.abs(np.log(ratios))))
    same_wiring = one.torus.axes == other.torus.axes if one.torus and other.torus else _domain(one) == _domain(other)
    return _OTHER_CHIP * (1.0 if same_wiring else _OTHER_WIRING) * float(np.exp(-distance))


def _both(one: Chip, other: Chip, precision: str) -> bool:
    return precision in one.peak_flops and precision in other.peak_flops


def _domain(chip: Chip) -> int | None:
    return chip.scaleup.domain if chip.scaleup else None


def _layout(plan: Plan | None) -> list[float]:
    return [float(np.log2(plan.degree(axis))) if plan else float("nan") for axis in AXES]


def _doublings(counts: Sequence[float | None]) -> _Scores:
    return np.log2(np.array([np.nan if count is None else count for count in counts], dtype=float))


def _falling(doublings: _Scores) -> _Scores:
    return 1 - np.minimum(doublings / _LAST_DOUBLING, 1)


def _equal(column: NDArray[np.str_], value: str) -> _Scores:
    known = (column != "") & bool(value)
    return np.where(known, (column == value).astype(float), np.nan)


def _known_bottleneck(bottleneck: Bottleneck | None) -> str:
    unknown = (None, Bottleneck.OPAQUE, Bottleneck.INSUFFICIENT_EVIDENCE)
    return "" if bottleneck in unknown else str(bottleneck)


def _known_bound(bound: str | None) -> str:
    return "" if bound in (None, "unknown") else str(bound)
