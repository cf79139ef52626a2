"""What each layer recomputes under a program."""

from collections import Counter

from asap.mapping.coverage import Coverage, value_of
from asap.mapping.language.program import Program
from asap.mapping.plan_program import policy_of
from asap.mapping.target import Target
from asap.plans.remat import Policy


def layers_by_policy(program: Program, target: Target, otherwise: Policy) -> dict[Policy, int]:
    """Rematerialisation → number of layers that have it; ``otherwise`` is that of layers no line speaks of."""
    coverage, found = Coverage(target, "remat", program), Counter[Policy]()
    for bit, line in coverage.holding().items():
        first, last = coverage.places[bit].layers or (0, -1)
        found[policy_of(*value_of(line))] += last - first + 1
    if left := target.layers - found.total():
        found[otherwise] += left
    return dict(found)
