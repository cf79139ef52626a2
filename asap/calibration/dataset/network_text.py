"""What free text in a published row says of the network between nodes: its rate, its kind, GPUs of a node."""

import re
from collections.abc import Mapping
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
_INSIDE = re.compile(r"nvlink|nvswitch|xgmi|infinity fabric|\bici\b", re.IGNORECASE)
_RATE = r"(\d+(?:\.\d+)?)\s*(Gb|GB|Tb|TB)(?:it)?\s*(?:ps|/s|/sec)"
_OF_A_NODE = re.compile(r"\b(a|per|each) node|/node|node-node|between nodes|inter-?node|inter-?machine", re.IGNORECASE)
_PORTS = re.compile(
    r"(?<![\d.])(\d{1,2})\s*[x×]\s*(?:[A-Za-z][\w-]*\s+){0,6}?" + _RATE.replace(r"\s*(?:ps", r"\s*(?:|ps")
)
_PORT_SPEEDS = (40, 56, 100, 200, 400, 800)  # Gbit/s of one port: InfiniBand QDR to XDR, Ethernet


def network_of(row: Mapping[str, Any]) -> float | None:
    """Bytes/s between nodes, for a whole node, where the row tells: ``8x50GB/s``, ``1600 Gbps node-node``, a site.

    A rate without a count, and without saying that it is a node's, is that of one port, as many of which as the node
    has: it tells nothing that the chip's own network does not.
    """
    for key in ("interconnect", "hardware_detail"):
        text = str(row.get(key) or "")
        found = _stated(text) or next((rate for site, rate in _SITES.items() if site in text.casefold()), None)
        if found:
            return found
    return None


def _stated(text: str) -> float | None:
    """The only rate of a node that is stated; ``None`` where there are several."""
    rates = set()
    for part in re.split(r"[;+]", text):
        if links := re.search(r"(\d+)\s*x?\s*Omni-?Path", part, re.IGNORECASE):
            return int(links[1]) * OMNIPATH
        if _INSIDE.search(part) and not _OF_A_NODE.search(part):
            continue
        whole = {_bytes(*found) for found in re.findall(_RATE, part)}
        if _OF_A_NODE.search(part) and len(whole) == 1:
            rates |= whole
        elif ports := _PORTS.search(part):
            rates.add(int(ports[1]) * _bytes(ports[2], ports[3]))
        else:
            rates |= {rate for rate in whole if rate / GBIT not in _PORT_SPEEDS}
    return rates.pop() if len(rates) == 1 else None


def _bytes(number: str, unit: str) -> float:
    return float(number) * {"Gb": GBIT, "GB": 1e9, "Tb": 1e3 * GBIT, "TB": 1e12}[unit]


def node_of(row: Mapping[str, Any]) -> int | None:
    """GPUs of a node, where the row tells."""
    text = str(row.get("hardware_detail") or "")
    found = re.search(r"(\d+)[\s-]*GPUs?\s?(?:/\s?node| per node| nodes?)|(?<![\w-])(\d+)/node", text)
    return int(found[1] or found[2]) if found else None


def fabric_of(row: Mapping[str, Any]) -> str | None:
    """The kind of network beyond a node, where the row tells and where it is not the usual one of a DGX."""
    text = f"{row.get('interconnect') or ''} {row.get('hardware_detail') or ''}".casefold()
    kinds = {
        "omni-?path|jean zay": "omnipath",
        r"\baws\b|\befa\b|\bp[345]d?\w*\.\d+xlarge": "aws",
        "tcpx|roce|ethernet": "ethernet",
    }
    return next((kind for pattern, kind in kinds.items() if re.search(pattern, text)), None)
