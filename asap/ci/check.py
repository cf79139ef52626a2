"""``check``: from two commits to a report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from asap import __version__
from asap.ci.checks.comparison import Comparison
from asap.ci.report import MOST_CONFIGURATIONS, CiReport
from asap.ci.source.git import Repository
from asap.ci.source.policy import Policy, Prices, policy_at, policy_findings
from asap.ci.source.resolve import LinkedExperiments
from asap.ci.source.revision import Revision
from asap.ci.source.selection import changed_configurations
from asap.core.files import scratch_folder
from asap.experiments import ExperimentStore

MOST_SECONDS = 300
"""Of one check; a pull request of a hundred configurations takes about twenty."""


@dataclass(frozen=True)
class Options:
    """What the command line sets, over the policy of the base commit."""

    configurations: tuple[str, ...] = ()
    policy: Policy | None = None
    prices: Prices | None = None
    hardware: Mapping[str, str] | None = None

    def applied_to(self, base: Policy) -> Policy:
        """The policy of the base commit with these options over it."""
        policy = self.policy or base
        options = {"configurations": self.configurations, "prices": self.prices, "hardware": self.hardware}
        return policy.model_copy(update={field: value for field, value in options.items() if value})


def check(
    repository: Repository,
    base: str,
    head: str,
    options: Options,
    experiments: LinkedExperiments | None = None,
    progress: Callable[[str], None] | None = None,
) -> CiReport:
    """Report on every configuration that a head changes since it left its base.

    Args:
        repository: that holds the commits.
        base: branch, tag or commit that the change is to be merged into; its policy applies.
        head: branch, tag or commit of the change.
        options: of the command line.
        experiments: to link configurations to; the user's own by default.
        progress: called with the path of each configuration.

    Raises:
        NotFoundError: a commit is not in this clone.
        BadInputError: the commits have no common ancestor here.
        ConfigError: the policy is malformed.
    """
    tip, end = repository.commit(base), repository.commit(head)
    fork = repository.merge_base(tip, end)
    with scratch_folder("ci") as scratch:
        before, after, rules = (Revision(repository, commit, Path(mkdtemp(dir=scratch))) for commit in (fork, end, tip))
        policy = options.applied_to(policy_at(rules) if options.policy is None else Policy())
        comparison = Comparison(before, after, policy, experiments or LinkedExperiments(ExperimentStore()))
        until = time.monotonic() + MOST_SECONDS
        found, late = changed_configurations(repository, before, after, policy, until)
        reports = []
        for one in found[:MOST_CONFIGURATIONS]:
            if time.monotonic() > until:
                break
            if progress:
                progress(one.path)
            reports.append(comparison.report(one))
    kept = tuple(report for report in reports if report is not None)
    unchecked = len(found) - len(reports)
    limit = f"{MOST_SECONDS} s" if len(reports) < MOST_CONFIGURATIONS else f"{MOST_CONFIGURATIONS} configurations"
    notes = (f"{unchecked} more changed configurations were not checked: the limit is {limit}.",) * (unchecked > 0)
    notes += (f"{late} more changed files were not looked into: the limit is {MOST_SECONDS} s.",) * (late > 0)
    return CiReport(
        version=__version__,
        base=fork,
        head=end,
        currency=policy.prices.currency,
        configurations=kept,
        findings=tuple(finding for report in kept for finding in policy_findings(report, policy)),
        notes=notes,
    )
