"""Names of kernels from the sources of some twenty libraries, each labelled by hand."""

import csv
from pathlib import Path

import pytest

from asap.profiles.collectives import stated_collective, work_of_kernel

NAMES = Path(__file__).resolve().parents[1] / "data" / "kernels" / "kernel_names.tsv"
LEAST = 0.95


def _label(name: str) -> str:
    work = work_of_kernel(name)
    return work.collective or ("collective" if work.work == "communication" else work.work)


def test_kernels_of_today_are_known_by_their_names():
    with NAMES.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    wrong = [row["name"] for row in rows if _label(row["name"]) != row["label"]]
    assert len(wrong) <= (1 - LEAST) * len(rows), wrong


def test_a_name_that_nobody_knows_is_unknown():
    assert work_of_kernel("kernel_7(float*)").work == "other"


@pytest.mark.parametrize(
    ("stated", "kind"),
    [("_allgather_base", "all-gather"), ("allreduce", "all-reduce"), ("all_to_allv", "all-to-all"), ("other", None)],
)
def test_what_pytorch_states_names_the_collective(stated, kind):
    assert stated_collective(stated) == kind
