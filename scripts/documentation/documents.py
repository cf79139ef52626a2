"""The JSON documents that other programs read: their names, what writes them, and their JSON schemas."""

import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, create_model

from asap.ci.report import CiReport
from asap.compiler.verification import Verification
from asap.doctor.packages import Check
from asap.experiments.experiment import Experiment
from asap.experiments.logs.reading import LogDocument
from asap.history.record import HistoryRecord
from asap.ledger.ledger import Ledger
from asap.mapping.check import CheckReport, FormatReport
from asap.mapping.explain import Explanation
from asap.mapping.space import Space
from asap.optimize.by_mapping import MappingOptimization
from asap.optimize.report import OptimizationReport
from asap.prediction.prediction import Prediction
from asap.prediction.uncertainty.calibration import Calibration
from asap.prediction.uncertainty.own_runs import OwnRuns
from asap.replay.replay import Replay
from asap.reports.analysis import Analysis
from asap.reports.comparison import RunComparison
from asap.sharding_memory.record import Record
from asap.sharding_memory.sessions import Verdict
from asap.traces.analysis.report import ReplayReport, TraceReport, WhatIfReport
from documentation.pages import ROOT

SNAPSHOTS = ROOT / "tests" / "data" / "schemas"


@dataclass(frozen=True)
class Document:
    """A kind of document: the type that it is written from, and what writes it, in Markdown.

    Documents that share a schema name are told apart by ``command``.
    """

    type: type[BaseModel]
    written_by: str
    command: str = ""

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema (2020-12), as it is written."""
        return TypeAdapter(self.type).json_schema(mode="serialization", by_alias=True)

    @property
    def name(self) -> str:
        """``asap.analysis/1``."""
        properties = self.schema["properties"]
        named = properties["schema"] if "schema" in properties else properties["version"]
        return named.get("const") or named["default"]

    @property
    def file(self) -> str:
        """Name of the file that keeps its schema: ``asap.analysis-1.json``."""
        command = f".{self.command}" if self.command else ""
        return f"{self.name.replace('/', '-')}{command}.json"


def _document(name: str, **parts: Any) -> type[BaseModel]:
    """A document that a command puts together: its fields with their types, all of them required."""
    title = name.partition(".")[2].partition("/")[0].title()
    fields: dict[str, Any] = {"schema_": (Literal[name], Field(alias="schema"))}
    fields |= {field: (kind, ...) for field, kind in parts.items()}
    return create_model(f"{title}Document", **fields)


DOCUMENTS = (
    Document(Analysis, "`asap analyze --format json`"),
    Document(
        _document("asap.prediction/2", experiment=str, predictions=tuple[Prediction, ...]),
        "`asap predict --format json`",
    ),
    Document(RunComparison, "`asap compare --format json`"),
    Document(Ledger, "`asap accuracy ledger --format json`"),
    Document(OptimizationReport, "`asap optimize --format json`"),
    Document(_document("asap.doctor/1", checks=tuple[Check, ...]), "`asap doctor --format json`"),
    Document(Verification, "`asap verify --format json`"),
    Document(CiReport, "`asap ci --format json`"),
    Document(LogDocument, "`asap resolve LOG --format json`"),
    Document(Experiment, "an experiment: `asap experiments show ID --format json`, and the files that are read"),
    Document(HistoryRecord, "a past optimization: `asap history show ID --format json`, and the files that are read"),
    Document(
        _document("asap.memory/1", session=str, verdict=Verdict, records=tuple[Record, ...]),
        "`asap sessions export --format json`",
    ),
    Document(
        _document("asap.replay/2", **{field.name: field.type for field in fields(Replay)}),
        "`asap sessions replay --format json`",
    ),
    Document(TraceReport, "`asap trace load --format json`", "load"),
    Document(ReplayReport, "`asap trace replay --format json`", "replay"),
    Document(WhatIfReport, "`asap trace what-if --format json`", "what-if"),
    Document(CheckReport, "`asap map check --format json`", "check"),
    Document(FormatReport, "`asap map format --format json`", "format"),
    Document(Explanation, "`asap map explain --format json`", "explain"),
    Document(Space, "`asap map space --format json`", "space"),
    Document(MappingOptimization, "`asap map optimize --format json`", "optimize"),
    Document(OwnRuns, "`asap accuracy calibrate --format json`"),
    Document(Calibration, "the constants of the step model: `scripts/calibrate`"),
)


def write_snapshots() -> None:
    """Keep the schema of each document; what no document has any more goes."""
    SNAPSHOTS.mkdir(parents=True, exist_ok=True)
    for old in SNAPSHOTS.glob("*.json"):
        old.unlink()
    for document in DOCUMENTS:
        (SNAPSHOTS / document.file).write_text(snapshot(document), encoding="utf-8")


def snapshot(document: Document) -> str:
    """A schema as it is kept: indented, keys in order, without titles and descriptions, which are free to change."""
    return json.dumps(_contract(document.schema), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _contract(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_contract(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _contract(part) for name, part in value.items()}
        elif key not in ("title", "description"):
            kept[key] = _contract(value)
    return kept
