"""XProf's converter, called on links in a folder of its own.

XProf caches its result beside its input under the name of the folder alone, and would answer for a file that has
been replaced since. So every conversion works on links in a fresh folder, which also leaves the user's clean.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from asap.core.errors import ProfileError, UsageError, extra_hint
from asap.core.files import scratch_folder
from asap.core.text import plain
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

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
MANGLED = 0.01
"""Share of U+FFFD above which a binary file went through a text decoder; a random file holds one in 16 million."""

TOOLS: dict[str, int | None] = {
    "overview_page": None,
    "roofline_model": None,
    "memory_profile": 1,
    "hlo_stats": None,
    "kernel_stats": None,
}
"""Tool → how many hosts it takes, ``None`` for all.

The first fills XProf's cache for those that take all; small tables come last, as nothing is left to do beside them.
"""

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_SAMPLE = 2**22


@contextmanager
def linked(files: Sequence[Path]) -> Iterator[list[Path]]:
    """Links to the files in a fresh folder."""
    with scratch_folder("profile") as folder:
        links = [folder / f"{number}.xplane.pb" for number in range(len(files))]
        for link, file in zip(links, files, strict=True):
            link.symlink_to(file.absolute())
        yield links


def run_tool(tool: str, links: Sequence[Path], files: Sequence[Path]) -> bytes:
    """What XProf returns for one tool.

    Raises:
        ProfileError: XProf cannot read a file.
        UsageError: it is not installed.
    """
    try:
        output, converted = _xprof().xspace_to_tools_data(links, tool, {})
    except RuntimeError as error:
        output, converted = str(error).encode(), False
    if not converted:
        raise _unreadable(links, files, output.decode(errors="replace"))
    return output


@cache
def _xprof() -> Any:
    """XProf's converter without its chatter: the library reads the level of logging once, when it is loaded."""
    before, os.environ[_LOG_LEVEL] = {key: os.environ[key] for key in (_LOG_LEVEL,) if key in os.environ}, "3"
    try:
        from xprof.convert import _pywrap_profiler_plugin
    except ImportError as error:
        hint = extra_hint("xprof")
        raise UsageError("this profile holds what only XProf reads, which is an extra", hint=hint) from error
    finally:
        del os.environ[_LOG_LEVEL]
        os.environ.update(before)
    return _pywrap_profiler_plugin


def _unreadable(links: Sequence[Path], files: Sequence[Path], reason: str) -> ProfileError:
    """The refusal of XProf, on the file that it concerns."""
    named = [file for link, file in zip(links, files, strict=False) if str(link) in reason]
    suspects = named or list(files)
    for link, file in zip(links, files, strict=False):
        reason = reason.replace(str(link), file.name)
    where = plain(suspects[0] if len(suspects) == 1 else suspects[0].parent)
    if any(_is_mangled(file) for file in suspects):
        return ProfileError("was copied as text, which destroys it", where=where, hint="copy it again as binary")
    message = f"cannot be read as a profile; XProf says: {plain(reason, 200)}"
    return ProfileError(message, where=where, hint="it may be cut off, or no profile at all")


def _is_mangled(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            sample = stream.read(_SAMPLE)
    except OSError:
        return False
    return sample.count(REPLACEMENT) * len(REPLACEMENT) > MANGLED * len(sample)


@dataclass(frozen=True)
class Conversion:
    """What XProf makes of a run."""

    summary: Summary
    steps: tuple[StepRow, ...]
    memory: MemoryProfile
    operations: tuple[HloRow, ...] = ()
    program: RooflineRow | None = None
    """The whole program over the whole window, if there are operations."""
    peaks: Peaks = field(default_factory=Peaks)
    kernels: tuple[KernelRow, ...] = ()
    warnings: tuple[str, ...] = ()

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
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{error!r}"
        message = f"XProf returned a table of an unknown form: {plain(reason, 120)}"
        raise ProfileError(message, where=plain(files[0]), hint="xprof 2.24 is known") from error


def _checked(output: Callable[[str], bytes]) -> Conversion:
    overview = _tables(output("overview_page"))
    summary = Summary.model_validate({key: value for table in overview for key, value in table.p.items()})
    steps = overview[1].records(StepRow)
    roofline = _tables(output("roofline_model"))[0]
    placed = {(row.hlo_module_id, row.operation): row for row in roofline.records(RooflineRow, **WHOLE_WINDOW)}
    memory = MemoryProfile.model_validate_json(output("memory_profile") or b"{}")
    operations = tuple(
        row.model_copy(update={"roofline_efficiency": found.roofline_efficiency})
        if (found := placed.get((row.program_id, row.hlo_op_name)))
        else row
        for row in _tables(output("hlo_stats"))[0].records(HloRow)
    )
    return Conversion(
        summary=summary,
        steps=steps,
        program=next((row for row in placed.values() if row.rank == 0 and operations), None),
        peaks=Peaks.model_validate(roofline.p),
        memory=memory,
        operations=operations,
        kernels=_tables(output("kernel_stats"))[0].records(KernelRow),
    )


def _tables(output: bytes) -> list[XprofTable]:
    """The tables of a tool: one, or a list in which those that do not apply are null."""
    decoded = from_json(output, cache_strings="keys")
    return [XprofTable.model_validate(table or {}) for table in (decoded if isinstance(decoded, list) else [decoded])]
