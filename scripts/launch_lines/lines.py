"""Lines to paste, the commands and files that they change, and what is to come of them."""

import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError
from asap.experiments.create import Statement, create_experiment
from asap.plans import Plan, Remat
from asap.plans.validity import Degrees
from asap.proposals.launch import launcher_line
from asap.proposals.propose import propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.proposals.trials import trials_of
from asap.study.study import Study, study_of
from real_configurations import batch_settings, studies

COMMANDS = Path(__file__).with_name("megatron_commands.txt")
BATCHES = (1, 2, 4, 8)


@dataclass(frozen=True)
class Line:
    """A line to paste.

    Args:
        run: that it changes.
        words: the arguments of that run.
        line: to paste; empty for the run as it is.
        devices: of the run.
        slices: of TPUs.
        hardware: of the run.
        meant: what the launcher is to make of the line, where it is asked: degrees, batches, recomputation.
    """

    run: str
    words: tuple[str, ...]
    line: str
    devices: int
    slices: int = 1
    hardware: str = ""
    meant: dict[str, int | str] = field(default_factory=dict, compare=False)

    def as_json(self) -> dict[str, Any]:
        """For the interpreter that has the launcher's packages."""
        return asdict(self)


def maxtext_lines(maxtext: Path, recipes: Path) -> Iterator[Line]:
    """Of the proposals for real configurations, as they are and with larger batches."""
    for name, study in studies(maxtext, recipes):
        for times in BATCHES:
            run = study if times == 1 else batch_settings(study, times)
            said = study.experiment.hyperparameters or {}
            words = tuple(f"{key}={value}" for key, value in said.items())
            yield _of_tpus(f"{name} x {times}", run, words, "")
            for proposal in propose(rank_candidates(run, {}), lambda study, plan: ()).proposals:
                yield _of_tpus(f"{name} x {times}", run, words, proposal.overrides.text)


def megatron_lines(folder: Path) -> Iterator[Line]:
    """Of all candidates for the commands of :data:`COMMANDS`, and of what is worth a test."""
    for number, command in enumerate(COMMANDS.read_text(encoding="utf-8").splitlines(), 1):
        devices, _, arguments = command.partition(" ")
        script = folder / f"{number}.sh"
        script.write_text(f"torchrun --nproc_per_node 8 --nnodes {int(devices) // 8} pretrain_gpt.py {arguments}\n")
        study = study_of(create_experiment("run", Statement(hardware=f"h100-{devices}"), config=script))
        candidates = (launcher_line(study, each.plan) for each in rank_candidates(study, {}).candidates)
        for line in ("", *candidates, *(trial.line for trial in trials_of(study))):
            yield Line(f"command {number}", changed(arguments, line), line, int(devices))


def changed(arguments: str, line: str) -> tuple[str, ...]:
    """Arguments of Megatron-LM under a line: what stands after ``# without`` is left out."""
    said, _, dropped = line.partition("# ")
    options = _by_option(arguments)
    for option in re.findall(r"--[\w-]+", dropped):
        options.pop(option, None)
    return tuple(word for option, values in (options | _by_option(said)).items() for word in (option, *values))


def _by_option(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    option = ""
    for word in shlex.split(text):
        if word.startswith("--"):
            option = word
            found[option] = []
        else:
            found[option].append(word)
    return found


def _of_tpus(name: str, study: Study, words: tuple[str, ...], line: str) -> Line:
    hardware = study.slice
    if hardware is None:
        raise AsapError(f"{name} has no hardware")
    return Line(name, words, line, hardware.devices, hardware.slices, study.experiment.hardware.name or "")


BATCHES_ON_GPUS = (1, 2, 4)
SIZES, SIZES_OF_TUNING = (16, 64, 256), (8, 32)
DEEPSPEED = "\ndeepspeed:"
FEW, MANY = 3, 12
"""Candidates of each batch, from the best to the worst: few for a launcher that builds the model, which takes long."""


def torchtitan_lines(folder: Path) -> Iterator[Line]:
    """Of some candidates for the configurations of torchtitan's models that it has written into a folder."""
    for file in sorted(folder.glob("*.json")):
        module, _, name = file.stem.partition("@")
        for devices in SIZES:
            yield from candidate_lines(f"{name} on {devices}", file, [], devices, (module, name), FEW)


def bridge_lines(folder: Path) -> Iterator[Line]:
    """Of all candidates for recipes of Megatron-Bridge that it has written into a folder."""
    for file in sorted(folder.glob("*.yaml")):
        module, _, name = file.stem.partition("@")
        devices = re.search(r"_(\d+)gpu_", name)
        if devices is not None:
            yield from candidate_lines(name, file, [], int(devices[1]), (module, name))


def axolotl_lines(checkout: Path) -> Iterator[Line]:
    """Of candidates for the examples of Axolotl that train all weights by FSDP or by replicas."""
    for file in sorted(checkout.glob("examples/**/*.y*ml")):
        for devices in SIZES_OF_TUNING:
            found = candidate_lines(f"{file.relative_to(checkout)} on {devices}", file, [], devices, (str(file),), MANY)
            yield from (line for line in found if DEEPSPEED not in file.read_text(encoding="utf-8"))


def candidate_lines(
    run: str, config: Path, overrides: list[str], devices: int, words: tuple[str, ...], most: int | None = None
) -> Iterator[Line]:
    """Of candidates for a configuration on H100s, as it is and with larger batches; none where it is not read."""
    try:
        study = study_of(
            create_experiment("run", Statement(hardware=f"h100-{devices}"), config=config, overrides=overrides)
        )
        yield Line(run, words, "", devices)
        for times in BATCHES_ON_GPUS:
            larger = study if times == 1 else batch_settings(study, times)
            candidates = rank_candidates(larger, {}).candidates
            for each in candidates[:: max(len(candidates) // most, 1) if most else 1]:
                yield Line(run, words, launcher_line(larger, each.plan), devices, meant=meaning_of(larger, each.plan))
    except AsapError as error:
        print(f"{run}: {error.message}", file=sys.stderr)


def meaning_of(study: Study, plan: Plan) -> dict[str, int | str]:
    """What a launcher is to make of a plan; sharded data parallelism counts together with the experts'."""
    batch = plan.global_batch or study.experiment.workload.global_batch or 0
    degrees = {axis: plan.degree(axis) for axis in ("replica", "seq", "model", "stage")}
    meant: dict[str, int | str] = {
        **degrees,
        "batch": batch,
        "data": plan.degree("data") * plan.degree("expert"),
        "sharded": int(plan.degree("data") > 1),
        "experts_over": Degrees.of(plan, study.experiment.workload.experts_over).expert_devices,
        "pipeline_repeats": plan.pipeline_repeats if plan.degree("stage") > 1 else 1,
    }
    if plan.microbatches:
        meant |= {"microbatches": plan.microbatches, "sequences": batch // plan.batch_shards // plan.microbatches}
    return meant | ({"remat": plan.remat.value} if isinstance(plan.remat, Remat) else {})
