"""What a training log settles."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from asap.experiments.observed import Ending, Measured


class LogHardware(BaseModel):
    """The machine as the log has it."""

    model_config = ConfigDict(frozen=True)

    chip: str | None = Field(default=None, description="key of asap/hardware")
    named: str | None = Field(default=None, description="as the log calls it")
    devices: PositiveInt | None = None
    nodes: PositiveInt | None = None
    devices_per_node: PositiveInt | None = None
    listed: PositiveInt | None = Field(default=None, description="devices that a tool lists on its nodes")
    slices: PositiveInt | None = Field(default=None, description="of TPUs, where the log says how many")
    network: str | None = Field(default=None, description="the transport that NCCL says it uses: IB, Socket, …")


FLATTENED = "flattened"  # a block without its indentation: what belongs to which section is not known


class SettingsBlock(BaseModel):
    """A block of resolved settings as it was printed."""

    model_config = ConfigDict(frozen=True)

    kind: str
    line: PositiveInt
    complete: bool = Field(description="false: the log cuts it, and what is missing is unknown")
    values: dict[str, Any]
    command: str = Field(default="", description="whose options the values are")


class LogReading(BaseModel):
    """Everything that a training log says of its last run."""

    model_config = ConfigDict(frozen=True)

    schema_: Literal["asap.log/1"] = Field(default="asap.log/1", alias="schema")
    file: str
    stack: str | None = None
    blocks: tuple[SettingsBlock, ...] = ()
    statements: dict[str, str] = Field(default_factory=dict, description="what single lines say of the settings")
    hardware: LogHardware = LogHardware()
    measured: Measured = Measured()
    figures: dict[str, float] = Field(default_factory=dict, description="what lines of steps say that checks the rest")
    global_batch_of_steps: PositiveInt | None = Field(default=None, description="sequences, as lines of steps have it")
    ending: Ending = Ending(kind="running")
    runs: PositiveInt = Field(default=1, description="runs in the log, of which the last is read")
    lines: NonNegativeInt = 0
    notes: tuple[str, ...] = ()


class LogDocument(BaseModel):
    """``asap resolve LOG --format json``: a reading with its settings under one name each."""

    model_config = ConfigDict(frozen=True)

    schema_: Literal["asap.log/1"] = Field(default="asap.log/1", alias="schema")
    file: str
    stack: str | None
    settings: dict[str, Any]
    data_parallel: int | None
    hardware: LogHardware
    measured: Measured
    ending: Ending | None = Field(description="none: a file of settings alone")
    runs: PositiveInt
    blocks: tuple[dict[str, Any], ...] = Field(description="kind, line and completeness of each block")
    notes: tuple[str, ...]

    @classmethod
    def of(cls, reading: LogReading, settings: "BaseModel") -> "LogDocument":
        """The document of a reading and its settings."""
        return cls(
            **{name: getattr(reading, name) for name in ("file", "stack", "hardware", "measured", "runs", "notes")},
            settings=settings.model_dump(mode="json", exclude_none=True),
            data_parallel=getattr(settings, "data_parallel", None),
            ending=reading.ending if reading.lines else None,
            blocks=tuple(one.model_dump(include={"kind", "line", "complete"}) for one in reading.blocks),
        )
