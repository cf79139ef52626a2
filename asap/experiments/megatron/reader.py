"""An experiment from the arguments of Megatron-LM, or from a YAML of what runs on its core."""

from collections.abc import Iterable
from pathlib import Path

from asap.experiments.experiment import Experiment
from asap.experiments.tables.reader import read_table
from asap.stacks.registry import by_framework, spec
from asap.stacks.stack_settings import StackSettings


def read_words() -> frozenset[str]:
    """Arguments that the reader takes; the others are kept as they are."""
    return spec("megatron").words()


def plain_name(key: str) -> str:
    """``--micro-batch-size`` → ``micro_batch_size``."""
    return key.removeprefix("--").replace("-", "_")


def is_argument(key: str) -> bool:
    """Whether an override is one of Megatron-LM's arguments."""
    return key.startswith("--") or plain_name(key) in read_words()


def read_megatron(
    settings: StackSettings,
    overrides: Iterable[str],
    experiment: Experiment,
    framework: str,
    unsettled: frozenset[str] = frozenset(),
) -> Experiment:
    """``experiment`` with what arguments say; raises like :func:`read_table`."""
    table = by_framework(framework) or spec("megatron")
    lines = settings.lines()
    return read_table(table, dict(settings), Path(settings.where()), overrides, experiment, unsettled, lines)
