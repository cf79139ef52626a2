"""The artifact: written by the unprivileged check job, read as untrusted input by the job that comments."""

from pathlib import Path

from pydantic import ValidationError

from asap.ci.render.comment import to_comment
from asap.ci.render.workflow import to_sarif
from asap.ci.report import SCHEMA, CiReport
from asap.core.errors import BadInputError
from asap.core.files import exists, write_atomically
from asap.experiments.files.documents import read_text, validation_reason

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
