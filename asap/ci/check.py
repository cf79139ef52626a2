"""``check``: two commits in, a report out."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asap import __version__
from asap.ci.git import Repository
from asap.ci.judging import judge
from asap.ci.known import Known
from asap.ci.pair import Pair
from asap.ci.policy import Policy, Prices, policy_at
from asap.ci.report import MOST_CONFIGURATIONS, CiReport
from asap.ci.revision import Revision
from asap.ci.selection import touched
from asap.experiments import ExperimentStore


@dataclass(frozen=True)
class Options:
    """What the command line says over the policy of the base commit."""

    configurations: tuple[str, ...] = ()
    policy: Policy | None = None
    prices: Prices | None = None

    def over(self, found: Policy) -> Policy:
        """The policy that counts."""
        policy = self.policy or found
        said = {"configurations": self.configurations, "prices": self.prices}
        return policy.model_copy(update={field: value for field, value in said.items() if value})


def check(
    repository: Repository,
    base: str,
    head: str,
    options: Options,
    known: Known | None = None,
    progress: Callable[[str], None] | None = None,
) -> CiReport:
    """Report on every configuration that a head changes since it left its base.

    Args:
        repository: where the commits lie.
        base: branch, tag or commit that the change is to be merged into; its policy counts.
        head: branch, tag or commit of the change.
        options: what is said beside the policy.
        known: experiments to link to; the user's own by default.
        progress: told which configuration is being looked at.

    Raises:
        NotFoundError: a commit is not in this clone.
        BadInputError: the commits have no common ancestor here.
        ConfigError: the policy is malformed.
    """
    tip, end = repository.commit(base), repository.commit(head)
    fork = repository.merge_base(tip, end)
    with tempfile.TemporaryDirectory(prefix="asap-ci-") as scratch:
        before, after, rules = (
            Revision(repository, commit, _folder(Path(scratch), name))
            for commit, name in ((fork, "before"), (end, "after"), (tip, "rules"))
        )
        policy = options.over(policy_at(rules) if options.policy is None else Policy())
        pair = Pair(before, after, policy, known or Known(ExperimentStore()))
        found = touched(repository, before, after, policy)
        reports = []
        for one in found[:MOST_CONFIGURATIONS]:
            if progress:
                progress(one.path)
            reports.append(pair.report(one))
    kept = tuple(report for report in reports if report is not None)
    dropped = len(found) - MOST_CONFIGURATIONS
    return CiReport(
        version=__version__,
        base=fork,
        head=end,
        currency=policy.prices.currency,
        configurations=kept,
        findings=tuple(finding for report in kept for finding in judge(report, policy)),
        notes=(f"{dropped} more configurations changed and were not looked at.",) if dropped > 0 else (),
    )


def _folder(scratch: Path, name: str) -> Path:
    (scratch / name).mkdir()
    return scratch / name
