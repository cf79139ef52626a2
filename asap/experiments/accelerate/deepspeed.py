"""An experiment from a DeepSpeed configuration (https://www.deepspeed.ai/docs/config-json) and a Hugging Face model."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from asap.experiments.experiment import Experiment
from asap.experiments.files.documents import read_document
from asap.experiments.huggingface_model import read_huggingface
from asap.experiments.tables.reader import read_table
from asap.stacks.registry import spec

_TABLE = spec("deepspeed")
_SIGNS, _STRONG, _OWN = (frozenset(_TABLE.names[name]) for name in ("signs", "strong", "own"))
"""Sections: two of the first with one of the second, or one of the third, make a file one of DeepSpeed."""
_MODEL_FILE = "config.json"


def is_deepspeed(values: Mapping[str, Any]) -> bool:
    """Whether a mapping is a configuration of DeepSpeed."""
    return bool(_OWN & values.keys()) or (bool(_STRONG & values.keys()) and len(_SIGNS & values.keys()) >= 2)


def is_setting(key: str) -> bool:
    """Whether an override is one of DeepSpeed's settings: ``zero_optimization.stage``."""
    return key.partition(".")[0] in _SIGNS


def read_deepspeed(
    values: Mapping[str, Any], path: Path, overrides: Iterable[str], experiment: Experiment
) -> Experiment:
    """``experiment`` with what a DeepSpeed configuration says, and the model of a ``config.json`` beside it; raises
    like :func:`asap.experiments.tables.reader.read_table`."""
    beside = path.parent / _MODEL_FILE
    if beside != path and beside.is_file() and "model_type" in (document := read_document(beside)).values:
        experiment = read_huggingface(document, experiment)
    return read_table(_TABLE, values, path, overrides, experiment)
