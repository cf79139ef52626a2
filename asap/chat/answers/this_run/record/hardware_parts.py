"""Parts of the hardware whose figures predictions take, and what the same figure is of when it is quoted otherwise."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from asap.hardware import Slice
from asap.hardware.nodes import chips_per_node

SPARSITY = 2.0
"""Data sheets quote the peak with structured sparsity, which training does not use."""


Unit = Literal["B/s", "FLOP/s"]
Share = Literal["link_efficiency", "network_efficiency", "memory_efficiency", "matmul_efficiency"]


@dataclass(frozen=True)
class HardwarePart:
    """A part of the hardware.

    Args:
        words: by which it is named.
        figures: what it does, each with what it is of; the first is what predictions take.
        source: the field of the chip that has the source.
        unit: B/s or FLOP/s.
        sustained: the constant that says which share of it published runs sustain.
    """

    words: re.Pattern[str]
    title: str
    figures: Callable[[Slice], list[tuple[float, str]]]
    source: str
    unit: Unit
    sustained: Share | None


def _part(
    words: str, title: str, figures: Callable[[Slice], list[tuple[float, str]]], source: str, sustained: Share | None,
    unit: Unit = "B/s",
) -> HardwarePart:  # fmt: skip
    return HardwarePart(re.compile(rf"\b(?:{words})\b", re.I), title, figures, source, unit, sustained)


def _links(hardware: Slice) -> list[tuple[float, str]]:
    chip = hardware.chip
    if chip.scaleup is not None:
        rate = chip.scaleup.bandwidth
        return [(rate, "of one GPU in one direction"), (2 * rate, "of one GPU in both directions together")]
    if chip.torus is None:
        return []
    rate, links = chip.torus.link_bandwidth, 2 * chip.torus.axes
    return [
        (rate, "of one link in one direction"),
        (2 * rate, "of one link in both directions together"),
        (links * rate, f"of the {links} links of a chip in one direction"),
        (2 * links * rate, f"of the {links} links of a chip in both directions together"),
    ]


def _network(hardware: Slice) -> list[tuple[float, str]]:
    rate, node = hardware.chip.network.bandwidth, chips_per_node(hardware.chip)
    one = "GPU" if hardware.chip.kind == "gpu" else "chip"
    found = [(rate, f"of one {one} in one direction"), (2 * rate, f"of one {one} in both directions together")]
    if node:
        found += [
            (node * rate, f"of a node of {node} in one direction"),
            (2 * node * rate, f"of a node of {node} in both directions together"),
        ]
    return found


def _peak(hardware: Slice) -> list[tuple[float, str]]:
    peaks = hardware.chip.peak_flops
    first = [("bf16", peaks["bf16"])] if "bf16" in peaks else []
    ordered = [*first, *((name, rate) for name, rate in peaks.items() if name != "bf16")]
    dense = [(rate, f"in dense {name}") for name, rate in ordered]
    return dense + [
        (SPARSITY * rate, f"in {name} with sparsity, which training does not use") for name, rate in ordered
    ]


PARTS = (
    _part(
        r"nvlinks?|nvswitch|scale-?up|xgmi|infinity fabric|ici|inter-?chip(?: interconnect)?", "", _links, "",
        "link_efficiency",
    ),
    _part(
        r"networks?|(?:interconnects?|fabric)(?![^?]*\d)|infiniband|ib|efa|roce|dcn|nics?|ethernet"
        r"|between (?:the )?nodes|inter-?node|across nodes"
        r"|scale-?out|bus-?bw|nccl(?:[- ]tests?)?|all_reduce_perf",
        "the network between nodes", _network, "network.bandwidth", "network_efficiency",
    ),
    _part(
        r"hbm(?:2e?|3e?)? (?:bandwidth|bw|rate|speed)|(?:peak|max(?:imum)?) (?:bandwidth|bw)"
        r"|memory (?:bandwidth|bw)|hbm(?=[^?!]*\d\s*[TG]B/s)",
        "HBM bandwidth",
        lambda hardware: [(hardware.chip.hbm_bandwidth, "of one chip")], "hbm_bandwidth", "memory_efficiency",
    ),
    _part(
        r"pci-?e|c2c|host link|(?:gpu|tpu|chip|host|device)[- ]to[- ](?:host|cpu|gpu|device)", "the link to the host",
        lambda hardware: [
            (rate, "in one direction"), (2 * rate, "in both directions together"),
        ] if (rate := hardware.chip.host_bandwidth) else [],
        "host_bandwidth", None,
    ),
    _part(
        r"peak(?! (?:hbm|memory|bandwidth|bw)\b)(?: flops?(?:/s)?| tera\w+| compute| rate)?"
        r"|t-?flop\w*(?= peak)|[tp]-?flop\w*", "the peak",
        _peak, "peak_flops", "matmul_efficiency", "FLOP/s",
    ),
)  # fmt: skip
