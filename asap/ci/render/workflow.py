"""What a GitHub workflow shows of a report: the step summary, and annotations of lines."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from asap.ci.render.comment import MARKER, to_comment
from asap.ci.report import RULES, CiReport, PolicyFinding
from asap.core.files import unwritable
from asap.core.text import plain

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
