"""The user's folder: writable, with room, its records readable."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from asap.core.files import home
from asap.core.units import GIB, format_bytes
from asap.doctor.check import Check, ok, optional, problem
from asap.experiments import ExperimentStore
from asap.sharding_memory import sessions, verify_session

LEAST_FREE = 1 * GIB
"""Compiled programs and indexes take hundreds of MiB."""
_NEWEST_SESSIONS = 20


def storage_checks() -> Iterator[Check]:
    """Folder, disk, experiments, worklogs."""
    folder = home()
    writable = _writable(folder)
    yield writable
    if writable.state == "ok":
        yield _disk(folder)
        yield _experiments()
        yield _worklogs()


def _writable(folder: Path) -> Check:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ok("home", str(folder))
    except OSError as error:
        return problem("home", f"{folder} cannot be written: {error.strerror}", "set ASAP_HOME to a writable folder")


def _disk(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    found = f"{format_bytes(free)} free"
    return ok("disk", found) if free >= LEAST_FREE else optional("disk", found, "free some space, or move ASAP_HOME")


def _experiments() -> Check:
    listing = ExperimentStore().list()
    if listing.warnings:
        return problem("experiments", listing.warnings[0], "correct or remove the file")
    return ok("experiments", f"{len(listing.experiments)} on record")


def _worklogs() -> Check:
    names = sessions()[-_NEWEST_SESSIONS:]
    damaged = [name for name in names if not verify_session(name).ok]
    if damaged:
        return optional("worklogs", f"{len(damaged)} of the newest damaged", f"asap memory verify {damaged[-1]}")
    return ok("worklogs", f"the newest {len(names)} are intact")
