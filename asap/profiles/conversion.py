"""XProf's conversion of a run, once, into checked tables.

XProf caches its result beside its input under the name of the folder alone, and would answer for a file that has
been replaced since. So every conversion works on links in a fresh folder, which also leaves the user's clean.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from asap.core.errors import ProfileError
from asap.core.text import plain
from asap.profiles.tables import HloRow, KernelRow, MemoryProfile, Peaks, RooflineRow, StepRow, Summary, Table

REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
MANGLED = 0.01
"""Share of U+FFFD above which a binary file went through a text decoder; a random file holds one in 16 million."""

TOOLS: dict[str, int | None] = {
    "overview_page": None,
    "hlo_stats": None,
    "roofline_model": None,
    "kernel_stats": None,
    "memory_profile": 1,
}
"""Tool → how many hosts it takes, ``None`` for all. The first fills XProf's cache, from which the next three read."""

_LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL"
_SAMPLE = 2**22
_TABLES = TypeAdapter(list[Table | None])


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
        whole = (row for row in self.roofline if row.is_total and row.rank == 0)
        return next(whole, None) if self.operations else None


def convert(files: Sequence[Path]) -> Conversion:
    """Convert the files of all hosts together; memory is that of the first host.

    Raises:
        ProfileError: XProf cannot read a file, or returns a table of another form.
    """
    outputs = convert_bare(files)
    try:
        overview = [table or Table() for table in _TABLES.validate_json(outputs["overview_page"])]
        operations, roofline, kernels = (
            _first_table(outputs[tool]) for tool in ("hlo_stats", "roofline_model", "kernel_stats")
        )
        return Conversion(
            summary=Summary.model_validate({key: value for table in overview for key, value in table.p.items()}),
            steps=overview[1].records(StepRow),
            operations=operations.records(HloRow),
            roofline=roofline.records(RooflineRow),
            peaks=Peaks.model_validate(roofline.p),
            kernels=kernels.records(KernelRow),
            memory=MemoryProfile.model_validate_json(outputs["memory_profile"] or b"{}"),
        )
    except (ValidationError, LookupError) as error:
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else f"{error} is missing"
        message = f"XProf returned a table of an unknown form: {plain(reason, 120)}"
        raise ProfileError(message, where=plain(files[0]), hint="xprof 2.24 is known") from error


def convert_bare(files: Sequence[Path]) -> dict[str, bytes]:
    """What XProf returns for each tool, as it is.

    Raises:
        ProfileError: XProf cannot read a file.
    """
    with _linked(files) as links:
        return {tool: _run(tool, links[:hosts], files) for tool, hosts in TOOLS.items()}


@contextmanager
def _linked(files: Sequence[Path]) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory(prefix="asap-") as folder:
        links = [Path(folder) / f"{number}.xplane.pb" for number in range(len(files))]
        for link, file in zip(links, files, strict=True):
            try:
                link.symlink_to(file.absolute())
            except OSError:
                shutil.copyfile(file, link)
        yield links


def _run(tool: str, links: Sequence[Path], files: Sequence[Path]) -> bytes:
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
    before = os.environ.get(_LOG_LEVEL)
    os.environ[_LOG_LEVEL] = "3"
    try:
        from xprof.convert import _pywrap_profiler_plugin
    finally:
        del os.environ[_LOG_LEVEL]
        if before is not None:
            os.environ[_LOG_LEVEL] = before
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


def _first_table(output: bytes) -> Table:
    tables = _TABLES.validate_json(output) if output.startswith(b"[") else [Table.model_validate_json(output)]
    return tables[0] or Table()
