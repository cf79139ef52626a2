"""What a GitHub workflow shows and keeps of a report: step summary, annotations, artifact."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from pydantic import ValidationError

from asap.ci.render.comment import MARKER, to_comment
from asap.ci.report import RULES, SCHEMA, CiReport, PolicyFinding
from asap.core.errors import BadInputError
from asap.core.files import exists, unwritable, write_atomically
from asap.core.text import plain
from asap.experiments.files.documents import read_text, validation_reason

LARGEST_SUMMARY = 1_000_000
"""Bytes of a step summary; GitHub's limit is 1 MiB."""

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def append_step_summary(report: CiReport, environment: Mapping[str, str] = os.environ) -> None:
    """Append the report to the file that ``GITHUB_STEP_SUMMARY`` names, if any.

    Raises:
        BadInputError: the file cannot be written.
    """
    summary = environment.get("GITHUB_STEP_SUMMARY")
    if summary:
        text = to_comment(report, LARGEST_SUMMARY).removeprefix(MARKER).lstrip()
        try:
            with Path(summary).open("a", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            raise unwritable(Path(summary).parent, error) from error


def annotations(report: CiReport, environment: Mapping[str, str] = os.environ) -> list[str]:
    """``::error file=…,line=…,title=…::…`` for each finding; none outside GitHub Actions."""
    if environment.get("GITHUB_ACTIONS") != "true":
        return []
    return [
        f"::{_COMMANDS[finding.level]} file={_property(finding.path)},line={finding.line},"
        f"title={_property(RULES[finding.rule])}::{_data(finding.path)}: {_data(finding.message)}"
        for finding in report.findings
    ]


def _data(text: str) -> str:
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: CiReport) -> str:
    """The findings for code scanning."""
    driver = {
        "name": "asap",
        "version": report.version,
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()],
    }
    run = {
        "tool": {"driver": driver},
        "results": [_result(finding) for finding in report.findings],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: PolicyFinding) -> dict[str, object]:
    location = {"artifactLocation": {"uri": quote(finding.path)}, "region": {"startLine": finding.line}}
    return {
        "ruleId": finding.rule,
        "level": finding.level,
        "message": {"text": _message(finding)},
        "locations": [{"physicalLocation": location}],
    }


def _message(finding: PolicyFinding) -> str:
    """Brackets are escaped: SARIF reads them as a link."""
    return re.sub(r"([\[\]\\])", r"\\\1", plain(f"{finding.path} {finding.message}"))


REPORT, COMMENT, SARIF = "asap-ci.json", "comment.md", "asap.sarif"
LARGEST_BYTES = 10_000_000


def write_artifact(report: CiReport, folder: Path) -> None:
    """A report in all formats."""
    write_atomically(folder / REPORT, report.to_json() + "\n")
    write_atomically(folder / COMMENT, to_comment(report))
    write_atomically(folder / SARIF, to_sarif(report) + "\n")


def read_artifact(path: Path, commit: str | None = None) -> CiReport:
    """A report from its file, or from the folder that holds it.

    Raises:
        NotFoundError: there is none.
        BadInputError: it is too large, does not follow the schema, is a link, or reports on another commit.
    """
    file = path / REPORT if exists(path) and path.is_dir() else path
    if file.is_symlink():
        raise BadInputError("is a symbolic link, which is not followed", where=str(file))
    text = read_text(file, LARGEST_BYTES)
    try:
        report = CiReport.model_validate_json(text)
    except ValidationError as error:
        raise BadInputError(f"does not follow {SCHEMA}: {validation_reason(error)}", where=str(file)) from error
    if commit is not None and report.head != commit:
        reason = f"reports on {report.head[:12]}, but the run was on {commit[:12]}"
        raise BadInputError(reason, where=str(file), hint="check the head of the pull request, not the merge commit")
    return report
