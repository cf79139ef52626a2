"""All checks, and the report for a bug: no key, no name of a user or a machine."""

import getpass
import platform
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

from asap.core.secrets import redacted
from asap.core.text import plain
from asap.doctor.packages import Check, package_checks, service_checks
from asap.doctor.storage import storage_checks
from asap.sharding_memory import Kind, readable_sessions

ROOMS: dict[str, Callable[[], Iterator[Check]]] = {
    "packages": package_checks,
    "services": service_checks,
    "storage": storage_checks,
}
_ERRORS = 5
_SHORTEST_NAME = 3


def run_checks(progress: Callable[[str], None]) -> list[Check]:
    """Look at everything."""
    found: list[Check] = []
    for name, checks in ROOMS.items():
        progress(f"checking {name}")
        found += checks()
    return found


def bug_report(checks: list[Check]) -> str:
    """What somebody needs who is to find a bug, as Markdown."""
    lines = ["# asap doctor", "", f"{platform.system()} {platform.release()}, {platform.machine()}", ""]
    lines += [f"- {check.state}: {check.name} ({check.found})" for check in checks]
    lines += ["", "## Latest errors", "", *(_latest_errors() or ["none in the worklogs"])]
    lines += ["", "## Installed", "", *sorted({f"- {d.name} {d.version}" for d in metadata.distributions()})]
    return "\n".join(_anonymous(line) for line in lines) + "\n"


def _latest_errors() -> list[str]:
    found = []
    for _, records in readable_sessions():
        for record in reversed(records):
            if record.kind is Kind.ERROR:
                found.append(f"- {record.fields.get('type')}: {plain(record.fields.get('message'), 300)}")
        if len(found) >= _ERRORS:
            break
    return found[:_ERRORS]


def _anonymous(line: str) -> str:
    """Without secrets, and without the names of the user, the machine and the folders of both."""
    line = redacted(line).replace(str(Path.home()), "~").replace(str(Path.cwd()), ".")
    for name, shown in ((_user(), "USER"), (platform.node(), "HOST")):
        if len(name) >= _SHORTEST_NAME and name != "root":
            line = line.replace(name, shown)
    return line


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
