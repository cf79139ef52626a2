"""Runs that tests make up."""

from typing import Any

from asap.experiments import Experiment, refer_to_hardware
from asap.models import Workload, find_architecture
from asap.plans import Plan
from asap.study.study import Study, study_of

PAPER = {
    "paper-v5p-512": ("compute", "data=16 seq=4 model=8"),
    "paper-v6e-16": ("hbm", "data=4 model=4"),
    "paper-v5e-256": ("communication", "data=8 seq=16 model=2"),
}
"""Bottleneck and expert mesh of the three experiments of the ASAP paper (section 3)."""


def study(
    plan: str, model: str = "llama3.1-8b", hardware: str = "v5e-256", batch: int = 256, sequence: int = 8192,
    framework: str | None = "MaxText", *, settings: dict[str, Any] | None = None, **stated: Any,
) -> Study:  # fmt: skip
    """A run of which this is on record and nothing else; in bf16, where nothing else is stated."""
    said = {"precision": "bf16", "framework": framework, **stated}
    work = Workload(global_batch=batch, sequence_length=sequence, **said)
    return study_of(
        Experiment(
            id="run", model=find_architecture(model), workload=work, plan=Plan.parse(plan),
            hardware=refer_to_hardware(hardware)[0], hyperparameters=settings or {},
        )
    )  # fmt: skip
