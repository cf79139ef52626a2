import dataclasses
import json
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from asap.experiments import Experiment
from asap.plans import Plan
from asap.sharding_memory.payload import plain_payload


class Colour(Enum):
    RED = "red"


class Model(BaseModel):
    path: Path
    values: tuple[float, ...]


@dataclasses.dataclass
class Data:
    model: Model


class Stubborn:
    def __repr__(self):
        raise RuntimeError("no")


def test_python_values_become_json():
    payload = {
        1: Colour.RED, "data": Data(Model(path=Path("/x"), values=(1.0, float("nan")))), "set": {3},
        "time": datetime(2026, 1, 2, tzinfo=UTC), "array": np.arange(3), "scalar": np.float32(0.5),
        "infinite": float("-inf"), "bytes": b"\xff",
    }  # fmt: skip
    assert plain_payload(payload) == {
        "1": "red", "data": {"model": {"path": repr(Path("/x")), "values": [1.0, "nan"]}}, "set": [3],
        "time": "2026-01-02T00:00:00+00:00", "array": [0, 1, 2], "scalar": 0.5, "infinite": "-inf",
        "bytes": r"b'\xff'",
    }  # fmt: skip


def test_cycles_depth_and_stubborn_objects_do_no_harm():
    cycle: list = [1]
    cycle.append(cycle)
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    plain = plain_payload([cycle, deep, Stubborn(), 10**5000])
    assert "inside itself" in plain[0][1]
    assert "cannot be represented" in plain[2]
    json.dumps(plain, allow_nan=False)


@given(st.text(st.characters(), max_size=50) | st.binary())
def test_any_text_becomes_json(value):
    json.dumps(plain_payload(value)).encode()


@pytest.mark.parametrize(
    "name", ["api_key", "apiKey", "x-goog-api-key", "Authorization", "hf_access_token", "password", "client_secret"]
)
def test_values_under_secret_names_are_redacted(name):
    assert plain_payload({"outer": [{name: "correct horse"}]}) == {"outer": [{name: "[redacted]"}]}


@pytest.mark.parametrize(
    "name", ["total_tokens", "prompt_token_count", "keywords", "tokens_per_second", "experts_per_token"]
)
def test_counts_of_tokens_are_kept(name):
    assert plain_payload({name: 17}) == {name: 17}


def test_secret_values_of_the_environment_are_redacted_anywhere(monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "plain-looking")
    monkeypatch.setenv("TERM_PROGRAM", "harmless-value")
    payload = {"plain-looking": ["say plain-looking", "harmless-value"]}
    assert plain_payload(payload) == {"[redacted]": ["say [redacted]", "harmless-value"]}


@pytest.mark.parametrize("remat", ["context", "key+value+host.query", "selective.mlp", "full.1/2", "minimal"])
def test_a_run_is_read_back_whatever_it_recomputes(remat):
    run = Experiment(id="mine", plan=Plan.parse(f"data=8 remat={remat}"))
    assert Experiment.model_validate(json.loads(json.dumps(plain_payload(run)))) == run
