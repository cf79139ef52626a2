"""Why a run ended: a machine that failed, and memory of a host, say nothing about the plan."""

import re

_PARTS = (
    r"(?:hosts?|nodes?|machines?|chips?|gpus?|tpus?|vms?|workers?|disks?|ssds?|nics?|links?|cables?|switch(?:es)?"
    r"|networks?|racks?|storage|file ?systems?|nfs|gcs|s3|dns|power|hardware|dimms?|boards?|pods?|schedulers?)"
)
_BROKEN = (
    r"(?:bad|faulty|broken|dead|flaky|lost|sick|unhealthy|defective|failing|crashed|rebooted|unreachable|down|gone|died"
    r"|fail(?:ed|s|ure)?|fault|outage|error|flap\w*|rebooting|reboot|hiccup|trouble|issue|problem)"
)
_MACHINE = re.compile(
    rf"\b{_BROKEN}\s+{_PARTS}\b|\b{_PARTS}(?:'s)?\s+(?:(?:was|were|is|went|had|has|a|an|got)\s+)*{_BROKEN}\b"
    r"|\bpre-?empt\w*|\bevict\w*|\bmaintenance\b|\becc\b|\bxid\b|\bspot (?:instance|vm)|\bquota\b"
    r"|\bdisk (?:was |is )?full\b|\bno space left\b|\bcancell?ed\b"
    r"|\b(?:killed|stopped) (?:it|by (?:us|me|somebody|someone|the (?:scheduler|admin)))\b",
    re.I,
)
_HOST_MEMORY = re.compile(
    r"\b(?:host|cpu|system|main|machine(?:'s)?|data ?loader(?:'s)?)\s+(?:\w+\s+)?"
    r"(?:ram|memory|oom\w*|(?:ran|runs|went) out of memory)\b"
    r"|\bram\b|\boom[- ]killer\b",
    re.I,
)


def machine_failed(text: str) -> bool:
    """Whether words blame a machine, its scheduler or its network."""
    return _MACHINE.search(text) is not None


def host_memory(clause: str) -> bool:
    """Whether words speak of the memory of a host, and not of its accelerators."""
    return _HOST_MEMORY.search(clause) is not None
