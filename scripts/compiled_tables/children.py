"""Several programs whose HBM the compiler plans, one at a time; libtpu reads its flags once a process."""

import multiprocessing
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import groupby
from typing import Any, TypeVar

from asap.compiler.programs.request import CompileRequest
from compiled_tables.hbm import configure, plan_memory

Key = TypeVar("Key", bound=Hashable)


def memory_plans(requests: Mapping[Key, CompileRequest]) -> Iterator[tuple[Key, dict[str, Any]]]:
    """Each key with the answer to its request, and its seconds; those of the same flags follow one another."""
    by_flags = sorted(requests, key=lambda key: requests[key].flags)
    for flags, keys in groupby(by_flags, lambda key: requests[key].flags):
        pool = _pool(flags)
        for key in keys:
            begin = time.monotonic()
            try:
                answer = pool.submit(plan_memory, requests[key]).result()
            except BrokenProcessPool:
                answer, pool = {"message": "the compiler crashed"}, _pool(flags)
            yield key, {**answer, "seconds": round(time.monotonic() - begin, 1)}
        pool.shutdown()


def _pool(flags: Sequence[str]) -> ProcessPoolExecutor:
    """One child process whose compiler has these flags."""
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(1, mp_context=context, initializer=configure, initargs=(flags,))
