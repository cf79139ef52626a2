"""The three proposals for a configuration, each as a diff of its own file."""

import difflib
import re
from collections.abc import Mapping, Sequence

from asap.ci.render.section import code
from asap.ci.report import Suggestion, SuggestionCitation
from asap.ci.source.resolve import ResolvedConfiguration
from asap.ci.source.selection import MOST_LINES
from asap.core.errors import InsufficientEvidenceError
from asap.core.numbers import as_setting
from asap.core.secrets import redacted_setting
from asap.core.text import plain, plain_lines
from asap.experiments.launch import SCRIPTS, read_launch
from asap.experiments.maxtext.settings import DEFAULTS
from asap.plans import Plan
from asap.proposals.proposal import Proposal
from asap.proposals.proposal_set import ProposalSet
from asap.proposals.propose import no_proposals, propose
from asap.proposals.selection.ranked_candidates import rank_candidates
from asap.study.study import Study

_MESH_DEFAULT = "1"
_AXIS = re.compile(r"(?:ici|dcn)_\w+_parallelism")
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
        diff=file_diff(resolved, study, proposal),
    )


def _lines(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(plain(line, 500) for line in lines[:_MOST_LINES_OF_PROSE])


def file_diff(resolved: ResolvedConfiguration, study: Study, proposal: Proposal) -> str | None:
    """The change to the file as a unified diff; ``None`` if it cannot be expressed in a few lines."""
    if resolved.text is None or resolved.path.endswith(".json"):
        return None
    configured, overrides = study.experiment.hyperparameters, proposal.overrides
    pairs = overrides.text.split() if overrides.stack == "maxtext" else ()
    wanted = {key: value for key, _, value in (pair.partition("=") for pair in pairs)}
    changed = {key: value for key, value in wanted.items() if _effective(configured, key) != value}
    lines = resolved.text.splitlines()
    if len(lines) > MOST_LINES:
        return None
    if resolved.path.endswith(SCRIPTS):
        new = _in_script(resolved.text, changed)
    elif study.experiment.workload.framework == "MaxText" and changed:
        new = _in_yaml(lines, changed)
    elif study.experiment.workload.framework != "MaxText":
        new = _in_record(lines, proposal.plan)
    else:
        return None
    if new is None or new == lines:
        return None
    name = plain(resolved.path, 200)
    diff = difflib.unified_diff(lines, new, f"a/{name}", f"b/{name}", n=_CONTEXT, lineterm="")
    text = "\n".join(redacted_setting(code(line)) for line in diff)
    return text if len(text) <= _LONGEST_DIFF else None


def _effective(configured: Mapping[str, object], key: str) -> str:
    fallback = DEFAULTS.get(key, _MESH_DEFAULT if _AXIS.fullmatch(key) else None)
    return as_setting(configured.get(key, fallback))


def _in_yaml(lines: list[str], changed: Mapping[str, str]) -> list[str]:
    new, left = list(lines), dict(changed)
    for index, line in enumerate(lines):
        key = re.match(r"([A-Za-z_]\w*)\s*:", line)
        if key and key[1] in left:
            comment = re.search(r"\s+#.*$", line)
            new[index] = f"{key[1]}: {left.pop(key[1])}{comment[0] if comment else ''}"
    while new and not new[-1].strip():
        new.pop()
    return [*new, *(f"{key}: {value}" for key, value in left.items())]


def _in_script(script: str, changed: Mapping[str, str]) -> list[str] | None:
    launch, missing = read_launch(script), []
    for key, value in changed.items():
        script, count = re.subn(_assignment(key), f"{key}={value}", script, count=1)
        if not count:
            missing.append(f"{key}={value}")
    if not missing:
        return script.splitlines()
    keys = [override.partition("=")[0] for override in launch.overrides] if launch else []
    last = re.search(_assignment(keys[-1]), script) if keys else None
    if last is None:
        return None
    return f"{script[: last.end()]} {' '.join(missing)}{script[last.end() :]}".splitlines()


def _assignment(key: str) -> str:
    return rf"(?<![\w-]){re.escape(key)}=[^\s\"'`\\;|&]+"


def _in_record(lines: list[str], plan: Plan) -> list[str] | None:
    places = [index for index, line in enumerate(lines) if re.match(r"plan\s*:\s*\S", line)]
    if len(places) != 1:
        return None
    return [*lines[: places[0]], f'plan: "{plan}"', *lines[places[0] + 1 :]]
