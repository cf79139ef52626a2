"""Variables that Slurm gives a job, from the directives of its script (``sbatch``, output environment variables), and
the kind of GPU that these ask for."""

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
_OPTION = re.compile(r"--([a-z-]{1,60})[= ](?:gpu:)?(?:[\w.-]{1,60}:)?([1-9]\d{0,6})", re.ASCII)
_KIND = re.compile(
    r"(?:^[ \t]*#SBATCH\s|\b(?:sbatch|srun|salloc)\s)[^\n]{0,500}?"
    r"(?:--gres[= ](?:\S*,)?gpu:|--gpus(?:-per-(?:node|task))?[= ]|-G\s*)(?P<kind>[A-Za-z][\w.-]*):\d",
    re.MULTILINE,
)


def gpu_of_directives(text: str) -> str | None:
    """The kind of GPU that a script asks Slurm for: ``--gres=gpu:a100:4``; ``None`` where it names none, or several."""
    kinds = {found["kind"].casefold() for found in _KIND.finditer(text)}
    return next(iter(kinds)) if len(kinds) == 1 else None


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
