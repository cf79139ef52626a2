"""Known architectures by name."""

import json
from pathlib import Path

import pytest

import asap.models
from asap.models import count_parameters, find_architecture, known_architectures
from asap.models.catalogue import find_base
from tests.cases import cases

FILE = Path(asap.models.__file__).parent / "catalogue.jsonl"
ENTRIES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_every_entry_is_whole_sourced_and_found_by_its_names(entry) -> None:
    assert "https://" in entry["source"]
    for name in (entry["name"], *entry.get("aliases", ())):
        model = find_architecture(name)
        assert model.missing() == ()
        assert model.name == name
        assert model.model_dump(exclude_defaults=True, exclude={"name"}) == entry["architecture"]


def test_entries_differ_and_the_file_is_small() -> None:
    assert len(set(known_architectures())) == len(ENTRIES)
    assert len({json.dumps(entry["architecture"], sort_keys=True) for entry in ENTRIES}) == len(ENTRIES)
    assert FILE.stat().st_size < 110_000, "read whole at the first name: some 300 architectures, not a hub"


@cases("name, entry")
def test_names_as_hubs_and_launchers_write_them(name: str, entry: str) -> None:
    found, expected = find_architecture(name), find_architecture(entry)
    assert count_parameters(found) == count_parameters(expected)


@pytest.mark.parametrize("name", ["", "llama", "llama2-71b", "a model of ours", "../../etc/passwd"])
def test_an_unknown_name_finds_nothing(name: str) -> None:
    assert find_architecture(name) is None


@cases("checkpoint, base")
def test_a_checkpoint_has_the_shapes_that_its_name_begins_with(checkpoint, base):
    found = find_base(checkpoint)
    assert (found.name if found else None) == base
