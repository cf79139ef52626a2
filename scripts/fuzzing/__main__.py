"""``scripts/measure fuzz TARGET``: mutated examples until the time is over or something breaks.

What breaks is made as small as it can be, printed, and to become a test.
"""

import argparse
import os
import sys
import time

from hypothesis import Phase, given, seed, settings

from asap.core.files import scratch_folder
from fuzzing.case import SLOW_AND_LARGE, limits
from fuzzing.targets import TARGETS, Target

BATCH = 50


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/measure fuzz", description=__doc__)
    parser.add_argument("target", nargs="?", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the first case; printed")
    options = parser.parse_args()
    if options.target is None:
        width = max(map(len, TARGETS))
        print("\n".join(f"{name:{width}}  {target.reads}" for name, target in TARGETS.items()))
        return
    with scratch_folder("fuzz") as home:
        os.environ |= {"ASAP_HOME": str(home), "ASAP_DEBUG": "1"}
        print(f"{options.target}: seed {options.seed}", flush=True)
        print(f"{options.target}: {fuzz(TARGETS[options.target], options)} cases, nothing broke")


def fuzz(target: Target, options: argparse.Namespace) -> int:
    """Run batches until the time is over; the number of cases. Raises what a case raises, made small."""
    end, cases = time.monotonic() + 60 * options.minutes, 0
    inputs, check = target.prepare()

    def attack(case: str | bytes) -> None:
        nonlocal cases
        cases += 1
        with limits():
            check(case)

    batch = settings(
        max_examples=BATCH, deadline=None, database=None, phases=(Phase.generate, Phase.shrink),
        suppress_health_check=SLOW_AND_LARGE, print_blob=False,
    )  # fmt: skip
    while time.monotonic() < end:
        seed(options.seed + cases)(batch(given(inputs)(attack)))()
    return cases


if __name__ == "__main__":
    sys.exit(main())
