"""Predictions of step time and memory, with intervals.

The model is written over arrays, so importing it imports numpy: names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from asap.prediction.prediction import MemoryPart, MemoryPrediction, Prediction, TimePart

if TYPE_CHECKING:
    from asap.prediction.from_architecture import Measured, predict
    from asap.prediction.uncertainty.calibration import Calibration, load_calibration

_LAZY = {
    "Calibration": "uncertainty.calibration",
    "Measured": "from_architecture",
    "load_calibration": "uncertainty.calibration",
    "predict": "from_architecture",
}

__all__ = [
    "Calibration",
    "Measured",
    "MemoryPart",
    "MemoryPrediction",
    "Prediction",
    "TimePart",
    "load_calibration",
    "predict",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
