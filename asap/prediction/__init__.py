"""Predictions of step time and memory, with intervals.

The model is written over arrays, so importing it imports numpy: names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from asap.prediction.prediction import MemoryPart, MemoryPrediction, Prediction, TimePart

if TYPE_CHECKING:
    from asap.prediction.backtesting import BacktestReport, backtest
    from asap.prediction.calibration import Calibration, load_calibration
    from asap.prediction.predicting import Measured, predict
    from asap.prediction.rivals import RIVALS
    from asap.prediction.scoring import Scores, remat_codes, score_plans

_LAZY = {
    "BacktestReport": "backtesting",
    "backtest": "backtesting",
    "Calibration": "calibration",
    "load_calibration": "calibration",
    "Measured": "predicting",
    "predict": "predicting",
    "RIVALS": "rivals",
    "Scores": "scoring",
    "remat_codes": "scoring",
    "score_plans": "scoring",
}

__all__ = [
    "RIVALS",
    "BacktestReport",
    "Calibration",
    "Measured",
    "MemoryPart",
    "MemoryPrediction",
    "Prediction",
    "Scores",
    "TimePart",
    "backtest",
    "load_calibration",
    "predict",
    "remat_codes",
    "score_plans",
]


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
