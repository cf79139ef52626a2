"""The tables that XProf returns, checked at the edge. Units are XProf's; :mod:`asap.profiles.reading` makes them SI."""

import html
import math
import re
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_TAG = re.compile(r"<[^<>]*>")


def _number(value: Any) -> Any:
    """``"86.5%"`` → 86.5; ``""`` and ``"-nan"`` are missing."""
    if isinstance(value, str):
        text = value.strip().removesuffix("%")
        value = float(text) if text else None
    return value if value is None or math.isfinite(value) else None


def _visible_text(value: Any) -> Any:
    return html.unescape(_TAG.sub("", value)).strip() if isinstance(value, str) else value


Number = Annotated[float | None, BeforeValidator(_number)]
Count = Annotated[float, BeforeValidator(lambda value: _number(value) or 0.0)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


_Row = TypeVar("_Row", bound=_Record)


class XprofTable(_Record):
    """Columns, rows of cells and properties: the form of Google's chart library."""

    cols: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    p: dict[str, Any] = {}

    def records(self, kind: type[_Row], **only: object) -> tuple[_Row, ...]:
        """The rows as records of a kind; its columns alone are looked at, and empty cells are left out.

        ``only`` keeps the rows whose cells in those columns are as given.
        """
        wanted = {field.alias or name for name, field in kind.model_fields.items()} | only.keys()
        columns = {column["id"]: index for index, column in enumerate(self.cols) if column["id"] in wanted}
        tests = [(columns[name], value) for name, value in only.items()] if self.rows else []
        return tuple(
            kind.model_validate(
                {
                    name: cell["v"]
                    for name, index in columns.items()
                    if (cell := row["c"][index]) and cell.get("v") is not None
                }
            )
            for row in self.rows
            if all(row["c"][index]["v"] == value for index, value in tests)
        )


class HloRow(_Record):
    """An operation in ``hlo_stats``."""

    program_id: str = ""
    category: str
    hlo_op_name: str
    hlo_op_expression: str = ""
    kernels: tuple[str, ...] = Field(default=(), description="of a GPU, as our own reader knows them")
    tf_op_name: str = ""
    occurrences: Count = Field(description="summed over the cores of all hosts")
    total_self_time: Count = Field(description="µs, summed over the cores of all hosts")
    total_self_time_percent: Count = Field(description="0 to 100, of the window with its idle time")
    model_flop_rate: Count = Field(description="GFLOP/s")
    hbm_bw: Count = Field(description="GiB/s")
    bound_by: str
    roofline_efficiency: Number = Field(default=None, description="0 to 1, may exceed it; from ``roofline_model``")
    source_info: Annotated[str, BeforeValidator(_visible_text)] = ""


class RooflineRow(_Record):
    """An operation, or the whole program, in ``roofline_model``."""

    rank: Count = Field(description="0 is the program")
    operation: str
    hlo_module_id: str = ""
    total_time: Count = Field(description="µs, summed over the cores of all hosts")
    hbm_operational_intensity: Number = Field(default=None, description="FLOP per byte")
    bound_by: str
    roofline_efficiency: Number = Field(default=None, description="0 to 1, may exceed it")


WHOLE_WINDOW = {"step": "Total", "include_infeed_outfeed": True}
"""The rows of ``roofline_model`` to read: others are for a single step, or the same again without infeed."""


class Peaks(_Record):
    """Properties of ``roofline_model``: the roofs of one core."""

    peak_flop_rate: Number = Field(default=None, description="GFLOP/s")
    peak_hbm_bw: Number = Field(default=None, description="GiB/s")
    hbm_ridge_point: Number = Field(default=None, description="FLOP per byte")


class KernelRow(_Record):
    """A GPU kernel in ``kernel_stats``."""

    kernel_name: str
    op_name: str = ""
    occurrences: Count = Field(description="summed over the GPUs of all hosts")
    total_duration_us: Count = Field(description="µs, summed over the GPUs of all hosts")


class Summary(_Record):
    """Properties of ``overview_page``: where the run ran and how busy it was. Only TPUs have the percentages."""

    device_type: str = ""
    device_core_count: Count = 0.0
    device_duty_cycle_percent: Number = None
    device_idle_time_percent: Number = None
    steptime_ms_average: Number = Field(default=None, description="0 where no step was marked")
    steptime_ms_minimum: Number = None
    steptime_ms_maximum: Number = None
    steptime_ms_standard_deviation: Number = None
    infeed_percent_average: Number = None

    @property
    def kind(self) -> Literal["tpu", "gpu", "cpu"]:
        """Family of ``device_type``: ``TPU v6 Lite``, ``AMD GPU - gfx942``, ``CPU``; without one it is a TPU."""
        return "gpu" if "GPU" in self.device_type else "cpu" if self.device_type == "CPU" else "tpu"


class StepRow(_Record):
    """A marked step in ``overview_page``, in ms. The parts exclude each other; TPUs have none of these columns."""

    duration: Number = Field(default=None, alias="stepTimeMs")
    compute: Count = Field(default=0.0, alias="deviceComputeTimeMs")
    copies: Count = Field(default=0.0, alias="deviceToDeviceTimeMs")
    collectives: Count = Field(default=0.0, alias="deviceCollectivesTimeMs")
    host: Count = Field(default=0.0, alias="hostComputeTimeMs")
    launch: Count = Field(default=0.0, alias="kernelLaunchTimeMs")
    infeed: Count = Field(default=0.0, alias="infeedTimeMs")


def _used(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    summary = entry.get("profileSummary") or {}
    return (summary.get("peakStats") or {}).get("peakBytesInUse", 0), summary.get("memoryCapacity", 0)


class MemoryProfile(_Record):
    """The peak and the capacity of each allocator of one host in ``memory_profile``, in bytes."""

    allocators: dict[str, Annotated[tuple[int, int], BeforeValidator(_used)]] = Field(
        default={}, alias="memoryProfilePerAllocator"
    )

    @property
    def fullest(self) -> tuple[int, int] | None:
        """Peak and capacity of the device whose memory was filled most; host allocators are left out."""
        return max((use for name, use in self.allocators.items() if "host" not in name and use[1]), default=None)
