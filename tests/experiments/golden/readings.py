"""The golden readings: files of stacks, how they are read or refused, and the lines that plans become for them.

``readings.jsonl.gz`` has one case a line. A case names what it shows (``case``), and holds ``files``, the one that is
read (``path``), ``overrides`` and ``experiment``, and either ``reads``, the record without what is not known, or
``refuses``, the error; ``lines`` has the line to paste for each plan, or why there is none.
"""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from asap.core.errors import AsapError
from asap.experiments import Experiment, read_configuration
from asap.plans import Plan
from asap.stacks.launchers import launch_lines, stack_of

FILE = Path(__file__).with_name("readings.jsonl.gz")
_FIELDS = {"model", "workload", "hardware", "notes", "environment"}


def cases() -> Iterator[dict[str, Any]]:
    """Every case on record."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def laid_out(case: Mapping[str, Any], folder: Path) -> Path | None:
    """The file of a case that is read, all laid into a folder."""
    for name, text in case["files"].items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", errors="surrogateescape")
    return folder / case["path"] if case["path"] else None


def outcome(case: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """How a case reads today, its files laid into an empty folder."""
    path = laid_out(case, folder)
    try:
        run = read_configuration(path, case["overrides"], Experiment.model_validate(case["experiment"]))
    except AsapError as error:
        return {"refuses": _anywhere(f"{type(error).__name__}: {error}", folder)}
    dumped = run.model_dump(mode="json", exclude_none=True, exclude_defaults=True, include=_FIELDS)
    reads = dumped | ({"plan": str(run.plan)} if run.plan else {})
    return {
        "reads": json.loads(_anywhere(json.dumps(reads), folder)),
        "lines": [_line(run, one) for one in case["lines"]],
    }


def _line(run: Experiment, asked: Mapping[str, Any]) -> dict[str, Any]:
    told = {"global_batch": run.workload.global_batch} | asked["told"]
    try:
        line = launch_lines(Plan.parse(asked["plan"]), stack_of(run.workload.framework), run.hyperparameters, **told)
    except AsapError as error:
        return {**asked, "line": f"{type(error).__name__}: {error}"}
    return {**asked, "line": line}


def _anywhere(text: str, folder: Path) -> str:
    """The text without where the files lie."""
    return re.sub(rf"(?:/private)?{re.escape(str(folder))}/?", "", text)
