"""Benchmarks by name. Every figure is a median; peers are measured in turn with us, in the same run."""

import json
import os
import platform
import sys
from collections.abc import Callable

from benchmarks.commands import (
    analyze_bundled,
    chat_answer,
    ci_fifty,
    ci_one,
    knowledge_build,
    knowledge_cold,
    knowledge_query,
    knowledge_query_large,
    optimize_overhead,
    start_help,
    start_version,
)
from benchmarks.engine import (
    log_scan,
    predict_one,
    predict_space,
    step_model_rate,
    trace_load,
    trace_memory,
    trace_what_if,
)
from benchmarks.profiles import profile_hosts, profile_kpis
from benchmarks.timing import Result
from mapping.language import mapping_check, mapping_fuzz
from mapping.loop import mapping_kernel, mapping_loop, mapping_predictions
from optimization.loop_benchmark import benchmark as optimize

BENCHMARKS: dict[str, Callable[[], Result]] = {
    "start_help": start_help,
    "start_version": start_version,
    "analyze_bundled": analyze_bundled,
    "profile_kpis": profile_kpis,
    "profile_hosts": profile_hosts,
    "log_scan": log_scan,
    "trace_load": trace_load,
    "trace_memory": trace_memory,
    "trace_what_if": trace_what_if,
    "knowledge_cold": knowledge_cold,
    "knowledge_build": knowledge_build,
    "knowledge_query": knowledge_query,
    "knowledge_query_large": knowledge_query_large,
    "predict_one": predict_one,
    "predict_space": predict_space,
    "step_model_rate": step_model_rate,
    "ci_one": ci_one,
    "ci_fifty": ci_fifty,
    "chat_answer": chat_answer,
    "mapping_check": mapping_check,
    "mapping_fuzz": mapping_fuzz,
    "mapping_loop": mapping_loop,
    "mapping_predictions": mapping_predictions,
    "mapping_kernel": mapping_kernel,
    "optimize": optimize,
    "optimize_overhead": optimize_overhead,
}


def main(names: list[str]) -> None:
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        sys.exit(f"scripts/measure bench: unknown {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    machine = {"python": platform.python_version(), "cores": os.cpu_count(), "machine": platform.machine()}
    results = {name: BENCHMARKS[name]() for name in names or BENCHMARKS}
    print(json.dumps({"schema": "asap.bench/1", "machine": machine, "results": results}, indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
