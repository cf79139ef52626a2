"""An experiment from a script that starts a recipe of Megatron-Bridge."""

from collections.abc import Iterable
from pathlib import Path

from asap.experiments.experiment import Experiment
from asap.experiments.hardware import refer_to_hardware
from asap.experiments.megatron.bridge.script import Start, hardware_of, left_to_recipe, recipe_arguments
from asap.experiments.megatron.reader import read_megatron
from asap.experiments.megatron.yaml_dialects import BRIDGE
from asap.experiments.named_model import read_named_model
from asap.experiments.settings.stack_settings import StackSettings

_SHARDS_STATE = "use_distributed_optimizer"


def read_bridge_script(start: Start, path: Path, overrides: Iterable[str], experiment: Experiment) -> Experiment:
    """``experiment`` with the start of a recipe of Megatron-Bridge; raises like :func:`read_megatron`.

    What it does not say is the recipe's: the degrees and sharding are unknown then, and so is recomputation.
    """
    settings = recipe_arguments(start, path)
    experiment = _with_recipe(start, settings, experiment)
    read = read_megatron(settings, overrides, experiment, BRIDGE, left_to_recipe(settings, experiment.model))
    if read.workload.zero_stage is not None or _SHARDS_STATE in read.hyperparameters:
        return read
    note = f"whether replicas share the optimizer's state is the recipe's: add {_SHARDS_STATE}=true where they do"
    return read.model_copy(update={"notes": (*read.notes, note)})


def _with_recipe(start: Start, settings: StackSettings, experiment: Experiment) -> Experiment:
    """The experiment with the GPUs and the model of a recipe, where they are not said."""
    given = experiment.hardware
    if given.chip is None and (said := hardware_of(settings, given.devices)) is not None:
        hardware, _ = refer_to_hardware(said)
        sources = experiment.provenance | {"hardware": settings.source("gpu")}
        experiment = experiment.model_copy(update={"hardware": hardware, "provenance": sources})
    if experiment.model is None:
        model, notes = read_named_model(start.model)
        experiment = experiment.model_copy(update={"model": model, "notes": (*experiment.notes, *notes)})
    return experiment
