"""Variables that Slurm gives a job, from the directives of its script (``sbatch``, output environment variables)."""

import re
from collections.abc import Mapping, Sequence

_NAMES = {
    "nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "gpus-per-node": ("SLURM_GPUS_PER_NODE", "SLURM_GPUS_ON_NODE"),
    "gres": ("SLURM_GPUS_ON_NODE",),
}
_SHORT = {"-N": "--nodes", "-n": "--ntasks"}
_OPTION = re.compile(r"--([a-z-]+)[= ](?:gpu:)?(?:[\w.-]+:)?([1-9]\d{0,6})", re.ASCII)


def slurm_variables(words: Sequence[str], known: Mapping[str, str | None]) -> dict[str, str]:
    """Variables by one directive, and what follows from it and those before.

    Args:
        words: of the directive, ``sbatch`` first.
        known: variables before it.
    """
    text = " ".join(_SHORT.get(word, word) for word in words)
    found = {name: said[2] for said in _OPTION.finditer(text) for name in _NAMES.get(said[1], ())}
    both = {**known, **found}
    nodes, each = both.get("SLURM_NNODES"), both.get("SLURM_NTASKS_PER_NODE")
    if nodes and each and "SLURM_NTASKS" not in both:
        found |= dict.fromkeys(_NAMES["ntasks"], str(int(nodes) * int(each)))
    return found
