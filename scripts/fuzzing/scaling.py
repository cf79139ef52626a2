"""Time of every reader over the length of its input: what is repeated twice as often takes at most 2.3 times as long.

A reader whose time grows faster than length to the power 1.2 lets a stranger's file burn a machine. Each of some units,
which are the openings and fillings of the formats that are read, is repeated up to a length and to twice that.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import log2
from pathlib import Path

from asap.agents.grounding.catalogue import Catalogue
from asap.agents.grounding.verdict import check
from asap.agents.workflow.protocol import Judgement, read_answer
from asap.chat.classifier import classifier
from asap.chat.language import parse as read_line
from asap.chat.slots import read_slots
from asap.ci.github.event import read_event
from asap.ci.render.workflow import read_artifact
from asap.ci.source.policy import read_policy
from asap.ci.source.selection import looks_like_configuration
from asap.core.errors import AsapError
from asap.core.files import scratch_folder
from asap.core.secrets import redacted, redacted_setting
from asap.core.text import markdown, plain
from asap.experiments import Experiment, read_configuration
from asap.experiments.create import read_log
from asap.experiments.maxtext_script import read_launch
from asap.experiments.trackers.tracked_run import TrackedRun, as_experiment
from asap.history.files import parse_record
from asap.history.query import HistoryQuery, parse_query
from asap.knowledge.notes.note_files import parse_notes
from asap.mapping.language.parse import parse as read_mapping
from asap.optimize.evaluators.run.log import RunLog, why_it_died
from asap.plans import Plan
from asap.plans.prose import plan_spans
from asap.plans.remat import read_policy as read_remat
from asap.sharding_memory.record import scan
from asap.traces.readers.thunks import read_thunks
from asap.traces.recording import load_trace
from asap.traces.what_if.change import parse_change

LENGTH = 50_000
SHORTEST_S = 0.3
"""A time at twice the length from which an exponent is measured."""
LARGEST_EXPONENT = 1.2
UNITS = {
    "dashes": "-", "long dashes": "--a ", "blanks": " ", "quotes": '"', "single quotes": "'", "backslashes": "\\\n",
    "dollars": "$", "braces": "${", "substitutions": "$(", "backticks": "`", "brackets": "[", "parentheses": "(",
    "curly": "{", "commas": ",", "equals": "a=", "colons": "a: ", "new lines": "\n", "items": "- a\n", "keys": "k: 1\n",
    "nested": "a: {", "comments": "# a\n", "heredocs": "<<E\n", "ifs": "if a; then\n", "fors": "for i in a; do\n",
    "cases": "case a in\n", "pipes": "a | ", "ands": "a && ", "exports": "export A=1\n", "digits": "1", "letters": "a",
    "dots": "a.", "slashes": "a/", "underscores": "a_", "ats": "a@", "tokens": "token=", "urls": "https://a:",
    "anchors": "- &a a\n", "tags": "!a ", "documents": "---\n", "calls": "a(", "strings": "'a' ", "lambdas": "lambda: ",
    "steps": "step: 1 loss: 2.0\n", "iterations": " iteration 1/ 2 | ", "settings": "a ....... 1\n", "names": "(a=1, ",
    "secrets": "password: a1b2c3d4 ", "signed": "?sig=a", "headings": "# a\n", "shards": "shard a by b over c\n",
    "unary": "not ", "options": "--a b \\\n", "assignments": "a=b ", "plans": "data=2 ", "keys of JSON": '"a": 1,\n',
}  # fmt: skip
PREFIXES = {
    "": "",
    "MaxText": "python3 -m MaxText.train ",
    "Megatron": "torchrun pretrain_gpt.py --num-layers 2 ",
    "a program": "import transformers\nx = ",
    "YAML": "model_name: a\nmesh_axes: ",
    "TOML": "[training]\na = ",
}


CONFIGURATIONS = ("train.", "launch")
"""Readers that the prefixes are for."""


@dataclass(frozen=True)
class Scaling:
    """How the time of a reader grew."""

    reader: str
    prefix: str
    unit: str
    seconds: float
    exponent: float

    @property
    def ok(self) -> bool:
        return self.exponent <= LARGEST_EXPONENT


def _file(name: str, folder: Path, text: str) -> None:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    read_configuration(path, (), Experiment(id="scaled"))


def _by_path(read: Callable[[Path], object], path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    read(path)


def _read_try(path: Path) -> None:
    log = RunLog(path, {"per_device_batch_size": "2"}, 4096.0)
    log.read(to_end=True)
    why_it_died(log.tail, 1, len(log.times))


def readers(folder: Path) -> dict[str, Callable[[str], object]]:
    """All that read what a stranger wrote, by name."""
    names = ("train.sh", "train.yml", "train.json", "train.toml", "train.py", "train.sbatch", "train.log")
    by_path = {
        "rank0.json": lambda path: load_trace([path]),
        "policy.toml": read_policy,
        "event.json": read_event,
        "asap-ci.json": read_artifact,
        "thunks.csv": read_thunks,
        "step.log": read_log,
        "try.log": _read_try,
    }
    return {
        **{name: partial(_file, name, folder) for name in names},
        **{name: partial(_by_path, read, folder / name) for name, read in by_path.items()},
        "mapping": read_mapping,
        "precedent": lambda text: parse_record(text, "line 1"),
        "note": lambda text: parse_notes(text, "note.md"),
        "worklog": lambda text: scan(text.encode()),
        "prose": plan_spans,
        "chat": read_line,
        "setting": redacted_setting,
        "launch": read_launch,
        "selection": partial(looks_like_configuration, "a.yml"),
        "plan": Plan.parse,
        "remat": read_remat,
        "change": parse_change,
        "slots": read_slots,
        "classifier": classifier().scores,
        "search": lambda text: parse_query(HistoryQuery(text=text)),
        "answer": lambda text: read_answer(text, Judgement, "recommendation"),
        "grounding": lambda text: check(text, Catalogue()),
        "parameter": lambda text: as_experiment(TrackedRun("scaled", {"a": text}), Experiment(id="scaled")),
        "redaction": redacted,
        "terminal": plain,
        "markdown": markdown,
    }


def scalings(length: int = LENGTH, only: str = "", units: Mapping[str, str] = UNITS) -> Iterator[Scaling]:
    """Every reader with every prefix and unit that takes long enough to be measured."""
    with scratch_folder("scaling") as folder:
        for name, read in readers(folder).items():
            if only not in name:
                continue
            for prefix, before in (PREFIXES if name.startswith(CONFIGURATIONS) else {"": ""}).items():
                for unit, text in units.items():
                    found = _measured(read, before, text, length)
                    if found is not None:
                        yield Scaling(name, prefix, unit, *found)


def _measured(read: Callable[[str], object], before: str, unit: str, length: int) -> tuple[float, float] | None:
    short, whole = (before + unit * (size // len(unit)) for size in (length, 2 * length))
    seconds = _seconds(read, whole)
    if seconds < SHORTEST_S:
        return None
    found = min(seconds, _seconds(read, whole)), min(_seconds(read, short), _seconds(read, short))
    return found[0], log2(found[0] / max(found[1], 1e-6))


def _seconds(read: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    with suppress(AsapError, ValueError):
        read(text)
    return time.process_time() - began


def main() -> None:
    length = int(sys.argv[1]) if len(sys.argv) > 1 else LENGTH
    bad = 0
    for one in scalings(length, sys.argv[2] if len(sys.argv) > 2 else ""):
        print(f"{one.reader:14} {one.prefix:10} {one.unit:16} {one.seconds:7.2f} s  {one.exponent:5.2f}", flush=True)
        bad += not one.ok
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
