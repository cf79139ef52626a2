"""XProf's conversion of a run, once, into checked tables."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from asap.core.errors import ProfileError
from asap.core.text import plain
from asap.profiles.xprof.converter import TOOLS, linked, run_tool
from asap.profiles.xprof.tables import (
    WHOLE_WINDOW,
    HloRow,
    KernelRow,
    MemoryProfile,
    Peaks,
    RooflineRow,
    StepRow,
    Summary,
    XprofTable,
)


@dataclass(frozen=True)
class Conversion:
    """What XProf makes of a run."""

    summary: Summary
    steps: tuple[StepRow, ...]
    operations: tuple[HloRow, ...]
    roofline: tuple[RooflineRow, ...]
    peaks: Peaks
    kernels: tuple[KernelRow, ...]
    memory: MemoryProfile

    @property
    def program(self) -> RooflineRow | None:
        """The row of the whole program over the whole window, if there are operations."""
        whole = (row for row in self.roofline if row.rank == 0)
        return next(whole, None) if self.operations else None

    @property
    def hides_kernels(self) -> bool:
        """Whether operations account for less than half of the time of GPU kernels: the others ran in CUDA graphs."""
        kernels = sum(row.total_duration_us for row in self.kernels)
        return bool(self.operations) and sum(row.total_self_time for row in self.operations) < kernels / 2


def convert(files: Sequence[Path]) -> Conversion:
    """Convert the files of all hosts together. Memory is that of the first host.

    A table is checked while XProf, which does not hold the interpreter, makes the next.

    Raises:
        ProfileError: XProf cannot read a file, or returns a table of another form.
    """
    with linked(files) as links:
        beside = ThreadPoolExecutor(1)
        outputs = {tool: beside.submit(run_tool, tool, links[:hosts], files) for tool, hosts in TOOLS.items()}
        try:
            return _conversion(files, lambda tool: outputs[tool].result())
        finally:
            beside.shutdown(cancel_futures=True)


def _conversion(files: Sequence[Path], output: Callable[[str], bytes]) -> Conversion:
    try:
        return _checked(output)
    except (ValueError, LookupError) as error:
        message = f"XProf returned a table of an unknown form: {plain(_complaint(error), 120)}"
        raise ProfileError(message, where=plain(files[0]), hint="xprof 2.24 is known") from error


def _complaint(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return error.errors()[0]["msg"]
    return f"{error} is missing" if isinstance(error, LookupError) else str(error)


def _checked(output: Callable[[str], bytes]) -> Conversion:
    overview = _tables(output("overview_page"))
    summary = Summary.model_validate({key: value for table in overview for key, value in table.p.items()})
    steps = overview[1].records(StepRow)
    roofline = _tables(output("roofline_model"))[0]
    return Conversion(
        summary=summary,
        steps=steps,
        roofline=roofline.records(RooflineRow, **WHOLE_WINDOW),
        peaks=Peaks.model_validate(roofline.p),
        memory=MemoryProfile.model_validate_json(output("memory_profile") or b"{}"),
        operations=_tables(output("hlo_stats"))[0].records(HloRow),
        kernels=_tables(output("kernel_stats"))[0].records(KernelRow),
    )


def _tables(output: bytes) -> list[XprofTable]:
    """The tables of a tool: one, or a list in which those that do not apply are null."""
    decoded = from_json(output, cache_strings="keys")
    return [XprofTable.model_validate(table or {}) for table in (decoded if isinstance(decoded, list) else [decoded])]
