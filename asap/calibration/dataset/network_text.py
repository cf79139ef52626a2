"""What free text in a published row says of the network between nodes: its rate, its kind, GPUs of a node."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

GBIT = 1e9 / 8
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
    r"(?<![\w.])(?P<count>\d{1,2})\s*[x×]\s*(?:[A-Za-z][\w/-]*\s+){0,6}?(?P<bracket>\()?"
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
