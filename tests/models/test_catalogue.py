"""Known architectures by name."""

import json
from pathlib import Path

import pytest

import asap.models
from asap.models import count_parameters, find_architecture, known_architectures
from asap.models.catalogue import find_base

FILE = Path(asap.models.__file__).parent / "catalogue.jsonl"
ENTRIES = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])
def test_every_entry_is_whole_sourced_and_found_by_its_names(entry) -> None:
    assert "https://" in entry["source"]
    for name in (entry["name"], *entry.get("aliases", ())):
        model = find_architecture(name)
        assert model is not None
        assert model.missing() == ()
        assert model.name == name
        assert model.model_dump(exclude_defaults=True, exclude={"name"}) == entry["architecture"]


def test_entries_differ_and_the_file_is_small() -> None:
    assert len(set(known_architectures())) == len(ENTRIES)
    assert len({json.dumps(entry["architecture"], sort_keys=True) for entry in ENTRIES}) == len(ENTRIES)
    assert FILE.stat().st_size < 110_000, "read whole at the first name: some 300 architectures, not a hub"


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("meta-llama/Llama-2-70b-hf", "llama2-70b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama3-8b"),
        ("meta-llama/Llama-3.1-405B", "llama3-405b"),
        ("mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"),
        ("google/gemma-2-9b-it", "gemma2-9b"),
        ("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek3-671b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("LLAMA3.1_70B", "llama3-70b"),
        ("/models/hf-meta-llama3-8B/", "llama3-8b"),
    ],
)
def test_names_as_hubs_and_launchers_write_them(name: str, entry: str) -> None:
    found, expected = find_architecture(name), find_architecture(entry)
    assert found is not None
    assert expected is not None
    assert count_parameters(found) == count_parameters(expected)


@pytest.mark.parametrize("name", ["", "llama", "llama2-71b", "a model of ours", "../../etc/passwd"])
def test_an_unknown_name_finds_nothing(name: str) -> None:
    assert find_architecture(name) is None


@pytest.mark.parametrize(
    ("checkpoint", "base"),
    [
        ("TinyLlama/TinyLlama-1.1B-step-50K-105b", "tinyllama-1.1b"),
        ("TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", "tinyllama-1.1b"),
        ("Open-Orca/Mistral-7B-OpenOrca", "mistral-7b"),
        ("Qwen/Qwen2.5-7B-Instruct-1M", "qwen2.5-7b"),
        ("google/gemma-2-9b-it-abliterated", "gemma2-9b"),
        ("Qwen/Qwen3-30B-A3B-Foo", None),
        ("Qwen/Qwen2.5-7B-VL", None),
        ("someone/Mistral-7B-MoE-4x", None),
        ("lmsys/vicuna-7b-v1.5", "llama2-7b"),
        ("01-ai/Yi-34B-200K", "yi-34b"),
    ],
)
def test_a_checkpoint_has_the_shapes_that_its_name_begins_with(checkpoint, base):
    found = find_base(checkpoint)
    assert (found.name if found else None) == base
