"""The duty cycle of the chips: ``DutyCycleTracker`` and ``DutyCycleCombiner`` of XProf."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from asap.profiles.tpu.core import Core
from asap.profiles.tpu.errors import UnfamiliarError
from asap.profiles.xplane.spans import covered, own_times
from asap.profiles.xplane.wire import Place, fields

_OFF_DUTY = ("infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done", "megacore fusion")
_LOCAL_CHIP = 4


def duty_cycle(cores: Iterable[Core]) -> float:
    """Share of the time of the chips of one or more hosts in which a core ran an operation, 0 to 1.

    Args:
        cores: of one host, or of several one after the other.
    """
    busy, whole = 0, 0
    for members in _chips(cores):
        busy += _active(members)
        everything = [spans for core in members for spans in (core.operations, core.modules) if len(spans)]
        if everything:
            starts, ends = ([getattr(spans, side) for spans in everything] for side in ("host_start", "host_end"))
            whole += int(max(end.max() for end in ends) - min(start.min() for start in starts))
    return busy / whole if whole else 0.0


def _active(cores: Sequence[Core]) -> int:
    """When at least one core was on duty. An operation within another one decides for its time."""
    on_duty = [_on_duty(core) for core in cores]
    if all(mine.all() for mine in on_duty):
        pairs = [(core.operations.host_start, core.operations.host_end) for core in cores]
        return covered(*map(np.concatenate, zip(*pairs, strict=True)))
    if len(cores) > 1:
        raise UnfamiliarError("transfers with the host on a chip of several cores")
    spans = cores[0].operations
    return int(own_times(spans.host_start, spans.host_end)[on_duty[0]].sum())


def _on_duty(core: Core) -> NDArray[np.bool_]:
    keys, place = np.unique(core.operations.metadata, return_inverse=True)
    off = [core.plane.description(key).stats.get("hlo_category") in _OFF_DUTY for key in keys.tolist()]
    return ~np.array(off, dtype=bool)[place]


def _chips(cores: Iterable[Core]) -> Iterable[list[Core]]:
    """Cores of one chip share its time; a core that does not say where it is stands alone."""
    chips: dict[tuple[int, int], list[Core]] = defaultdict(list)
    for core in cores:
        details = core.plane.stats.get("core_details")
        if isinstance(details, bytes):
            number = {number: value for number, _, value, _ in fields(details, Place(0, len(details)))}.get(
                _LOCAL_CHIP, 0
            )
            chips[core.host, number].append(core)
        else:
            yield [core]
    yield from chips.values()
