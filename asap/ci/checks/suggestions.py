"""The three proposals for a configuration, each as a diff of its own file."""

import difflib
import re
from collections.abc import Sequence

from asap.ci.checks.edits import edited_toml, edited_yaml
from asap.ci.render.section import code
from asap.ci.report import Suggestion, SuggestionCitation
from asap.ci.source.resolve import ResolvedConfiguration
from asap.ci.source.selection import MOST_LINES
from asap.core.errors import ConfigError, InsufficientEvidenceError
from asap.core.limits import FILE_LIMITS, LimitReachedError, within
from asap.core.secrets import redacted_setting
from asap.core.text import plain, plain_lines
from asap.experiments import read_launch
from asap.experiments.shell import SCRIPTS
from asap.plans import Plan
from asap.proposals.proposal import Proposal
from asap.proposals.proposal_set import ProposalSet
from asap.proposals.propose import no_proposals, propose
from asap.proposals.ranked_candidates import rank_candidates
from asap.study.study import Study

_CONTEXT = 1
_LONGEST_DIFF = 8000
_LONGEST_OVERRIDES = 4000
_MOST_LINES_OF_PROSE = 40
_MOST_CITATIONS = 20


def proposals_for(study: Study) -> ProposalSet:
    """Three proposals, or why there are none."""
    from asap.proposals.reasons.explain import cite

    try:
        return propose(rank_candidates(study), cite)
    except InsufficientEvidenceError as error:
        return no_proposals(InsufficientEvidenceError(error.message, where=error.where))


def suggestion(proposal: Proposal, resolved: ResolvedConfiguration, study: Study) -> Suggestion:
    """A proposal as the report holds it; without reasons if the configured mesh is invalid, as there is no baseline."""
    memory = proposal.prediction.memory
    comparable = study.plan is not None
    cited = proposal.citations[:_MOST_CITATIONS]
    citations = (SuggestionCitation(kind=c.kind, id=plain(c.id, 200), title=plain(c.title, 400)) for c in cited)
    return Suggestion(
        title=plain(proposal.title if comparable else proposal.plan, 300),
        plan=str(proposal.plan),
        step_time=proposal.prediction.step_time,
        relative_step_time=proposal.prediction.relative_step_time,
        hbm=memory.total if memory else None,
        faster=proposal.confidence.faster.value if proposal.confidence.faster else None,
        reasons=_lines(proposal.reasoning) if comparable else (),
        trade_offs=_lines(proposal.trade_offs) if comparable else (),
        citations=tuple(citations) if comparable else (),
        overrides=plain_lines(proposal.overrides.text)[:_LONGEST_OVERRIDES],
        exports=plain_lines("\n".join(proposal.overrides.exports))[:_LONGEST_OVERRIDES],
        diff=file_diff(resolved, proposal),
    )


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(plain(line, 500) for line in lines[:_MOST_LINES_OF_PROSE])


def file_diff(resolved: ResolvedConfiguration, proposal: Proposal) -> str | None:
    """The change to the file as a unified diff; ``None`` if it cannot be expressed in a few lines."""
    if resolved.text is None or len(lines := resolved.text.splitlines()) > MOST_LINES:
        return None
    text = resolved.text
    try:
        new = within(FILE_LIMITS, lambda: _edited(resolved, text, proposal), resolved.path)
    except LimitReachedError:
        return None
    if new is None or not resolved.becomes(proposal.plan, new):
        return None
    name = plain(resolved.path, 200)
    diff = difflib.unified_diff(lines, new.splitlines(), f"a/{name}", f"b/{name}", n=_CONTEXT, lineterm="")
    text = "\n".join(redacted_setting(code(line)) for line in diff)
    return text if 0 < len(text) <= _LONGEST_DIFF else None


def _edited(resolved: ResolvedConfiguration, text: str, proposal: Proposal) -> str | None:
    if resolved.path.endswith(SCRIPTS):
        return _in_script(text, proposal.overrides.text)
    edited = edited_toml if resolved.path.endswith(".toml") else edited_yaml
    try:
        return edited(text, proposal.overrides.text)
    except ConfigError:
        return _in_record(text, proposal.plan)


def _in_script(script: str, overrides: str) -> str | None:
    launch, missing = read_launch(script), []
    for override in overrides.split():
        script, count = re.subn(_assignment(override.partition("=")[0]), override, script, count=1)
        if not count:
            missing.append(override)
    if not missing and launch:
        return script
    keys = [override.partition("=")[0] for override in launch.overrides] if launch else []
    last = re.search(_assignment(keys[-1]), script) if keys else None
    return f"{script[: last.end()]} {' '.join(missing)}{script[last.end() :]}" if last else None


def _assignment(key: str) -> str:
    return rf"(?<![\w-]){re.escape(key)}=[^\s\"'`\\;|&]+"


def _in_record(text: str, plan: Plan) -> str | None:
    new, count = re.subn(r"^plan\s*:\s*\S.*$", lambda _: f'plan: "{plan}"', text, flags=re.MULTILINE)
    return new if count == 1 else None
