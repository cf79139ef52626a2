"""Findings as SARIF 2.1.0, located at the changed lines."""

import json
import re
from urllib.parse import quote

from asap.ci.report import RULES, CiReport, PolicyFinding
from asap.core.text import plain

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
