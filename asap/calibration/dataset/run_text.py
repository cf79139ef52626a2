"""What free text in a published row says: rematerialisation, attention kernel, framework, model family."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from asap.models.workload import ContextParallel, ExpertDispatcher
from asap.plans import Remat
from asap.plans.remat import MODULES, Policy, recomputed_modules
from asap.prediction.step_model.groups import framework_class

FLASH_YEAR = 2023  # arXiv:2205.14135 of May 2022 became the default of training stacks the year after
_LOSS_COMPILED = 2025
"""Year from which FSDP's stacks compile the loss. Judgement: HBM of published runs that do not say."""
_CHUNKED_SINCE, _TITAN_CHUNKS = "2026-05", 8  # of torchtitan, commit 786e26f8e
_REMAT = (
    (None, r"^\s*$"),
    (Remat.NONE, r"^none\b|everything_saveable|^false$"),
    (Remat.SELECTIVE, r"selective"),
    (Remat.SAVE_DOT_EXCEPT_MLP, r"save_dot_except_mlp"),
    (Remat.SAVE_OUT_PROJ, r"save_out_proj"),
    (Remat.SAVE_QKV_PROJ, r"save_qkv_proj"),
    (Remat.FULL, r"^custom \(decoder_layer_input=offload\)$"),
    (Remat.OFFLOAD, r"offload"),
    (Remat.MINIMAL, r"minimal|dots"),
    (Remat.FULL, r"full|every|layer|remat|nothing_saveable|checkpoint|uniform|block"),
)
_MODULES = {name: name for name in MODULES} | {"norm": "layernorm", "act": "moe_act", "attention": "core_attn"}
"""Words of rows for what Megatron-Core recomputes."""
_FAMILIES = (
    "llama", "mixtral", "mistral", "deepseek", "qwen", "gemma", "nemotron", "maxtext", "mpt", "moe", "gpt", "bloom",
    "internlm", "lucie", "kimi", "olmo", "falcon",
)  # fmt: skip


def remat_of(row: Mapping[str, Any]) -> tuple[Policy | None, bool]:
    """The policy, and whether activations go to host memory; ``None`` where the row does not tell.

    Selective means modules in Megatron, by default attention alone, and all but matrix multiplications in PyTorch's own
    checkpointing.
    """
    text = str(row.get("remat") or "").casefold()
    if (modules := _modules_of(text)) and framework_class(framework_of(row)) in ("megatron", "nemo"):
        return recomputed_modules(modules), False
    policy = next((policy for policy, pattern in _REMAT if re.search(pattern, text)), None)
    if policy is None and re.search(r"recompute", str(row.get("notes") or "")):
        policy = Remat.FULL
    if policy is Remat.SELECTIVE and framework_class(framework_of(row)) == "fsdp":
        policy = Remat.MINIMAL
    return policy, "offload" in text


def _modules_of(text: str) -> list[str]:
    """Modules in brackets, if nothing else is in them: ``selective (norm, act)``."""
    found = re.search(r"\((?:modules?\s+)?([\w, ]+)\)$", text)
    words = re.split(r",\s*", found[1]) if found else []
    return [_MODULES[word] for word in words] if all(word in _MODULES for word in words) else []


def attention_of(row: Mapping[str, Any]) -> str | None:
    """The kernel as stated; before flash attention was usual, the fused softmax of the day."""
    if row.get("attention_impl"):
        return str(row["attention_impl"])
    return "fused softmax" if (year_of(row) or FLASH_YEAR) < FLASH_YEAR else None


def context_parallel_of(row: Mapping[str, Any]) -> ContextParallel | None:
    """How devices share a sequence, where the row tells."""
    return "ulysses" if "ulysses" in str(row.get("cp_kind") or "").casefold() else None


def compiled_of(row: Mapping[str, Any]) -> bool | None:
    """Whether PyTorch compiled the model, where the row tells."""
    said = row.get("compiled")
    if isinstance(said, bool):
        return said
    notes = str(row.get("notes") or "").casefold()
    if re.search(r"\b(no|not|without)\b[\w\s.]{0,8}compile|\beager\b", notes):
        return False
    return True if re.search(r"\bcompiled?\b(?! not stated)", notes) else None


def compiled_loss_of(row: Mapping[str, Any]) -> bool | None:
    """Whether PyTorch compiled the loss, or a kernel takes it: alone, where the row says so, else with the model.

    torchtitan left it out until February 2025 (its commits e8977b007 and d1f62be73).
    """
    if isinstance(said := row.get("compiled_loss"), bool):
        return said
    if "the loss alone" in str(row.get("source")) or "cross-entropy kernel" in str(row.get("notes")):
        return True
    compiled, early = compiled_of(row), (year_of(row) or _LOSS_COMPILED) < _LOSS_COMPILED
    return False if compiled and early and framework_of(row) == "torchtitan" else compiled


def loss_chunks_of(row: Mapping[str, Any]) -> int | None:
    """Parts of the tokens whose logits exist at a time; torchtitan's models take eight since its commit 786e26f8e of
    April 2026."""
    said = re.match(r"(\d{4}-\d{2})", str(row.get("version") or ""))
    return _TITAN_CHUNKS if str(row.get("framework")) == "torchtitan" and said and said[1] >= _CHUNKED_SINCE else None


def has_fused_linear_cross_entropy(row: Mapping[str, Any]) -> bool | None:
    """Whether one kernel takes the output projection and the loss, where the row tells."""
    return True if re.search(r"fused linear cross.entropy", str(row.get("notes") or "").casefold()) else None


def weight_precision_of(row: Mapping[str, Any]) -> str | None:
    """In which parameters are kept, where the row tells."""
    if said := row.get("weight_precision"):
        return str(said)
    found = re.search(r"bf16 \(weights\b|(fp32|bf16) weights", str(row.get("precision") or ""))
    return (found[1] or "bf16") if found else None


def overlaps_experts_of(row: Mapping[str, Any]) -> bool | None:
    """Whether all-to-alls run beside the compute of another microbatch, where the row tells."""
    said = row.get("overlaps_experts")
    if isinstance(said, bool):
        return said
    return True if re.search(r"overlap of expert communication", str(row.get("notes") or "").casefold()) else None


def expert_dispatcher_of(row: Mapping[str, Any]) -> ExpertDispatcher | None:
    """How tokens reach their experts, where the row tells."""
    said = f"{row.get('moe_dispatcher') or ''} {row.get('notes') or ''}".casefold()
    if re.search(r"deep-?ep|hybrid-?ep", said):
        return "deepep"
    return "all_to_all" if row.get("moe_dispatcher") else None


def padded_capacity_of(row: Mapping[str, Any]) -> float | None:
    """The capacity factor to which experts are padded: MaxText's; that of Megatron pads if told to."""
    padded = framework_class(framework_of(row)) == "maxtext" or row.get("pads_experts") is True
    return float(row["capacity_factor"]) if padded and row.get("capacity_factor") else None


def framework_of(row: Mapping[str, Any]) -> str:
    """The framework; Megatron-LM is built on Megatron-Core, with Transformer Engine, since 2023 and since Hopper."""
    name, year = str(row.get("framework")), year_of(row)
    recent = re.search(r"\bG?[HB][1-3]00|MI3\d\d", str(row.get("hardware"))) if year is None else year >= FLASH_YEAR
    return "Megatron-Core" if name.startswith("Megatron-LM") and recent else name


def zero_stage_of(row: Mapping[str, Any]) -> int | None:
    """The ZeRO stage; NeMo and Megatron-Core run their distributed optimizer (stage 1) by default."""
    stated = row.get("zero_stage")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return stated
    return 1 if framework_class(framework_of(row)) == "nemo" else None


def year_of(row: Mapping[str, Any]) -> int | None:
    """The year in the version, if it has one."""
    found = re.search(r"\b(20[12]\d)\b", str(row.get("version") or ""))
    return int(found[1]) if found else None


def family_of(model: str) -> str:
    """``LLAMA3_70B`` → ``llama``."""
    low = model.casefold()
    return next((family for family in _FAMILIES if family in low), "other")


GBIT = 1e9 / 8  # bytes/s
OMNIPATH = 100 * GBIT  # Intel Omni-Path 100
_SITES = {
    # name in the text → bytes/s of a node
    "jean zay": 4 * OMNIPATH,  # IDRIS, Jean Zay: hardware description
    "p3.16xlarge": 25 * GBIT,  # AWS, Amazon EC2 P3 instances
    "p3dn.24xlarge": 100 * GBIT,
    "p4d.24xlarge": 400 * GBIT,  # AWS, Amazon EC2 P4 instances
    "p5.48xlarge": 3200 * GBIT,  # AWS, Amazon EC2 P5 instances
}
_ELSEWHERE = re.compile(r"\b(storage|management|pcie)\b[^:]*:", re.IGNORECASE)
"""Ports whose role is not to carry gradients."""
_INSIDE = re.compile(r"nvlink|nvswitch|xgmi|infinity fabric|\bici\b|\bhbm", re.IGNORECASE)
_OF_A_NODE = re.compile(r"\b(a|per|each) node|/node|node-node|between nodes|inter-?node|inter-?machine", re.IGNORECASE)
_NUMBER = r"(\d+(?:\.\d+)?)\s*"
_RATE = re.compile(_NUMBER + r"(Gb|GB|Tb|TB)(?:it)?\s*(?:ps|/s)", re.ASCII)
_PORTS = re.compile(
    r"(?<![\w.])(?P<count>\d{1,2})\s*[x×]\s*(?:[A-Za-z][\w/-]*\s+){0,6}?(?P<bracket>\()?(?:\d+Gb/)*"
    + _NUMBER
    + r"(?:(Gb|Tb)(?:it)?(?![A-Za-z])|(Gb|GB|Tb|TB)(?:it)?\s*(?:ps|/s))"
)


def network_of(row: Mapping[str, Any]) -> float | None:
    """Bytes/s between nodes, for a whole node, where the row tells: ``8x50GB/s``, ``1600 Gbps node-node``, a site.

    Of several groups of ports the fastest is meant, which is the one that collectives take; ports for storage and
    management carry none. A rate without a count, and without saying that it is a node's, is that of one port, as many
    of which as the node has: it tells nothing that the chip's own network does not.
    """
    for key in ("interconnect", "hardware_detail"):
        text = str(row.get(key) or "")
        found = max(_stated(text), default=None)
        found = found or next((rate for site, rate in _SITES.items() if site in text.casefold()), None)
        if found:
            return found
    return None


def _stated(text: str) -> Iterator[float]:
    """The rates of a node that a text states, one for each group of ports."""
    for part in re.split(r"[;,]|\s\+\s", text):
        of_a_node = _OF_A_NODE.search(part)
        rates = {_bytes(number, unit) for number, unit in _RATE.findall(part)}
        if links := re.search(r"(\d+)\s*x?\s*Omni-?Path", part, re.IGNORECASE):
            yield int(links[1]) * OMNIPATH
        elif _ELSEWHERE.search(part) or (_INSIDE.search(part) and not of_a_node):
            continue
        elif (ports := _PORTS.search(part)) and not (ports["bracket"] and of_a_node):
            yield int(ports["count"]) * _bytes(ports[3], ports[4] or ports[5])
        elif of_a_node and len(rates) == 1:
            yield rates.pop()


def _bytes(number: str, unit: str) -> float:
    return float(number) * {"Gb": GBIT, "GB": 1e9, "Tb": 1e3 * GBIT, "TB": 1e12}[unit]


def node_of(row: Mapping[str, Any]) -> int | None:
    """GPUs of a node, where the row tells."""
    text = str(row.get("hardware_detail") or "")
    found = re.search(
        r"(\d+)[\s-]*GPUs?\s?(?:/\s?node| per node| nodes?)|(?<![\w-])(\d+)/node|\bnodes?(?:\(s\))?\s+x\s+(\d+)\b", text
    )
    return int(next(filter(None, found.groups()))) if found else None


def fabric_of(row: Mapping[str, Any]) -> str | None:
    """The kind of network beyond a node, where the row tells and where it is not the usual one of a DGX."""
    text = f"{row.get('interconnect') or ''} {row.get('hardware_detail') or ''}".casefold()
    kinds = {
        "omni-?path|jean zay": "omnipath",
        r"\baws\b|\befa\b|\bp[345]d?\w*\.\d+xlarge": "aws",
        "tcpx|roce|ethernet": "ethernet",
    }
    return next((kind for pattern, kind in kinds.items() if re.search(pattern, text)), None)
