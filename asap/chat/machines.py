"""Hardware that free words name: ``a single RTX 4090``, ``4 nodes of 8xA100-40GB``, ``128 v5e chips``, ``h100-64``."""

import re

from asap.chat.numbers import COUNTS
from asap.core.numbers import as_setting
from asap.hardware import find_chip

_COUNTS = {**COUNTS, "single": 1}
_COUNT = rf"\d{{1,5}}|{'|'.join(_COUNTS)}"
_MACHINE = re.compile(
    rf"\b(?:(?P<nodes>{_COUNT})\s+(?:nodes?|hosts?|machines?|servers?)\s+(?:of|with)\s+)?"
    rf"(?:(?P<count>{_COUNT})\s*(?:x\s*)?)?"
    r"(?:(?:nvidia|amd|tesla|instinct)\s+)?"
    r"(?P<chip>(?:rtx|geforce)[ -]?a?\d{4}(?: ?ti| ?super| ?ada)?|tpu ?v\d[a-z]?|v\d[a-z]|trillium|[lt]4"
    r"|[a-z]{1,2}\d{2,3}[a-z]{0,2}(?:[ -]\d{2,3} ?gb)?)s?(?P<size>-\d+)?\b",
    re.IGNORECASE,
)
Span = tuple[int, int, str, str]


def machines(text: str) -> tuple[str | None, list[Span]]:
    """The hardware named last, as ``--hardware`` takes it, a chip alone where no count is said; and where it stands."""
    said = ((one, find_chip(one["chip"]) or find_chip(one["chip"].rstrip("sS"))) for one in _MACHINE.finditer(text))
    found = [(one, chip.chip) for one, chip in said if chip]
    if not found:
        return None, []
    (last, chip), spans = found[-1], [(*one.span(), "", _mask(one)) for one, _ in found]
    if last["size"]:
        return f"{last['chip']}{last['size']}", spans
    count = _number(last["count"])
    if last["nodes"]:
        return f"{_number(last['nodes'])}x{count or 8}x{chip.name}", spans
    return f"{chip.name}-{as_setting(count * chip.cores)}" if count else chip.name, spans


def _mask(found: re.Match[str]) -> str:
    """A size, or chips that are counted as such, stand for what is asked; a chip alone may be anything."""
    counted = re.match(r"\s*(?:chips|gpus|devices)\b", found.string[found.end() :], re.IGNORECASE)
    return "zhw" if found["size"] or counted else "zchip"


def _number(said: str | None) -> int:
    return _COUNTS.get(said.lower(), 0) or int(said) if said else 0
