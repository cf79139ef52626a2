"""A stack with a table whose run DeepSpeed shards: its configuration, with what it leaves ``auto`` filled in."""

from pathlib import Path
from typing import Any

from asap.experiments.deepspeed.named_configuration import read_named_configuration, with_note_on_shipped
from asap.experiments.deepspeed.training_arguments import read_with_arguments
from asap.experiments.experiment import Experiment
from asap.experiments.settings.stack_settings import StackSettings
from asap.plans.plan import Remat
from asap.stacks.deepspeed import settings as zero
from asap.stacks.deepspeed.trainer import RECOMPUTE, TRAINER_ACCUMULATION, TRAINER_MICRO_BATCH
from asap.stacks.reading import axis_degree, meaning, moves
from asap.stacks.spec import Spec

_OFFLOADED = "activations"


def read_with_deepspeed(
    spec: Spec, settings: StackSettings, named: Any, path: Path, experiment: Experiment
) -> Experiment:
    """``experiment`` with the DeepSpeed configuration that settings name; raises ConfigError where it is not there."""
    said = spec.with_defaults(settings)
    sizes = {zero.TENSOR: axis_degree(spec, said, "model"), zero.SEQUENCE: axis_degree(spec, said, "seq")}
    micro = settings.count(spec.batch.micro.key(said), 1)
    accumulation = spec.batch.accumulation.key(said) if spec.batch.accumulation else ""
    recomputes = meaning(spec.recompute[0], said) == Remat.FULL.value
    arguments = {
        TRAINER_MICRO_BATCH: micro, TRAINER_ACCUMULATION: settings.count(accumulation, 1), RECOMPUTE: recomputes,
    }  # fmt: skip
    configuration = {
        **read_named_configuration(named, path), **{key: size for key, size in sizes.items() if size != 1},
    }  # fmt: skip
    read = read_with_arguments(configuration, StackSettings(arguments, str(path)), path, (), experiment, of_yaml=True)
    read = with_note_on_shipped(read, named, path)
    kept = {key: value for key, value in read.hyperparameters.items() if key != TRAINER_MICRO_BATCH}
    recorded = kept | settings.harmless() | {spec.batch.micro.key(said): micro}
    moved = any(_OFFLOADED in one.what and moves(one, said) for one in spec.offload)
    plan = read.plan
    if plan is not None and plan.remat is Remat.FULL and moved:
        plan = plan.model_copy(update={"offload": (*plan.offload, _OFFLOADED)})
    return read.model_copy(update={"hyperparameters": recorded, "plan": plan})
