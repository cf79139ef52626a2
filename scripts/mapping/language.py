"""Benchmarks of the mapping language: the time to parse and check, and programs at random that must not crash it."""

import random
import statistics
import time
from pathlib import Path

from asap.compiler.reference.expressible import mapping_target
from asap.hardware import resolve_hardware
from asap.mapping.check import check
from asap.mapping.coverage import Target
from asap.mapping.language.feedback import Feedback
from asap.models import Architecture, Workload, find_architecture

CORPUS = Path(__file__).parents[2] / "tests" / "data" / "hostile" / "mappings"
PROGRAM = """\
# Llama 2 70B on one slice of 16 chips
mesh data=4 model=4
order f(i, j) = i * 4 + (i % 2 ? 3 - j : j)
shard embedding by vocabulary over data, model
shard embedding by embed over none
shard key, value by heads over none in layers 0..3
shard up, gate, down by hidden over model, data
shard up, gate, down by embed over none
constrain residual by sequence over none in layers 0..10
remat minimal
remat full in layers 0..9
place optimizer on pinned_host
microbatches 2
"""
LIMIT_S = 0.005
FUZZED = 100_000
_CHANGES = (
    "", " ", "*", "(", ")", "0", "99999999999", "none", "model", "query", "..", "?", "/", "\n", "#", "é", "\x00",
    "%", "=", "exchange", "halo", "grid", "layout", "gather", "stationary", "all_to_all", "points", "col", "bf16",
    "algorithm",
)  # fmt: skip


def mapping_check() -> dict[str, object]:
    """Parsing and checking a program of a dozen decisions for a model of 70 billion parameters; CPU time."""
    times = [_check(PROGRAM, _TARGET)[0] for _ in range(200)]
    return {"cpu_seconds": statistics.median(times), "limit_seconds": LIMIT_S, "decisions": PROGRAM.count("\n") - 1}


def mapping_fuzz(count: int = FUZZED) -> dict[str, object]:
    """Programs that differ from right ones in a few places at random; each refusal must have a place in its text."""
    draw, times, refused = random.Random(0), [], 0
    corpus = [PROGRAM, *(path.read_text(encoding="utf-8") for path in sorted(CORPUS.iterdir()))]
    for _ in range(count):
        text = _changed(draw, draw.choice(corpus))
        seconds, found = _check(text, None if "algorithm" in text else _TARGET)
        times.append(seconds)
        refused += bool(found)
        for each in found:
            assert 1 <= each.line <= text.count("\n") + 1, text
            assert 1 <= each.column <= max(map(len, text.split("\n"))) + 1, text
    slowest = sorted(times)[int(0.999 * len(times))]
    return {
        "cpu_seconds": statistics.median(times), "limit_seconds": LIMIT_S, "slowest_of_1000_cpu_seconds": slowest,
        "programs": count, "refused": refused,
    }  # fmt: skip


_MODEL = find_architecture("llama2-70b") or Architecture()
_TARGET = mapping_target(_MODEL, Workload(global_batch=64, sequence_length=4096))
_SLICE = resolve_hardware("v5e:4x4").slice


def _check(text: str, target: Target | None) -> tuple[float, tuple[Feedback, ...]]:
    start = time.process_time()
    found = check(text, target, _SLICE).feedback
    return time.process_time() - start, found


def _changed(draw: random.Random, program: str) -> str:
    lines = program.splitlines()
    text = "\n".join(draw.sample(lines, draw.randrange(1, len(lines) + 1)))
    for _ in range(draw.randrange(4)):
        place = draw.randrange(len(text) + 1)
        text = text[:place] + draw.choice(_CHANGES) + text[place + draw.randrange(6) :]
    return text
