"""The user's folder: writable, with room, its stores intact."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from asap.core.files import home, private_folder
from asap.core.units import GIB, format_bytes
from asap.doctor.packages import Check, ok, optional, problem
from asap.doctor.stores import STORES
from asap.experiments import ExperimentStore

LEAST_FREE = 1 * GIB
"""Compiled programs and indexes take hundreds of MiB."""


def storage_checks() -> Iterator[Check]:
    """Folder, disk, experiments, every store."""
    folder = home()
    writable = _writable(folder)
    yield writable
    if writable.state == "ok":
        yield _disk(folder)
        yield _experiments()
        for store in STORES:
            yield store.check()


def repair() -> Iterator[str]:
    """Mend what is damaged; what was done, a line each."""
    if _writable(home()).state == "ok":
        for store in STORES:
            yield from store.repair()


def _writable(folder: Path) -> Check:
    try:
        private_folder(folder)
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
