"""One configuration at both commits of a pull request, compared for the report."""

import difflib
import itertools
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from asap.ci.checks.predictions import (
    SidePrediction,
    anchor_to_measurement,
    predict_side,
    relative_cost,
    same_model,
    same_run,
    summarise,
)
from asap.ci.checks.suggestions import proposals_for, suggestion
from asap.ci.report import ConfigurationReport, Precedent, SettingChange, Side
from asap.ci.source.policy import Policy
from asap.ci.source.resolve import LinkedExperiments, ResolvedConfiguration, resolve
from asap.ci.source.revision import Revision, printable_path
from asap.ci.source.selection import MOST_LINES, ChangedConfiguration, changed_lines
from asap.core.secrets import redacted, strip_secrets
from asap.core.text import plain, plain_lines
from asap.core.units import format_seconds
from asap.evidence.anchor import start_from
from asap.experiments import Experiment
from asap.experiments.logs.read import SUFFIXES as LOGS
from asap.history import precedent_prior
from asap.models import Architecture
from asap.plans.validity import violations
from asap.prediction.prediction import Prediction
from asap.proposals.selection.precedents import LEAST_WEIGHT, SIMILAR_RUNS, precedent_sentence, similar_runs
from asap.reports.analysis import assemble
from asap.reports.labels import batch_size, describe_hardware, describe_model
from asap.reports.profile_facts import UNKNOWN
from asap.reports.summary import WHY, summary_of
from asap.study.study import BREAKS, Study

_MOST_CHANGES = 39
_NO_SETTING = frozenset({"run_name"})


def differences(before: Study, after: Study, texts: tuple[str, str] = ("", "")) -> tuple[SettingChange, ...]:
    """Plan, batch, model, hardware, then other settings, then what else the two texts of the file set differently."""
    pairs = [
        (name, describe(before.experiment), describe(after.experiment))
        for name, describe in (("plan", plan_text), ("batch", batch_text), ("hardware", hardware_text))
    ]
    seen = (one.experiment.measured for one in (before, after))
    old, new = (format_seconds(one.seconds) if one else UNKNOWN for one in seen)
    pairs.append(("measured step", old, new))
    changes = [SettingChange(what=name, before=old, after=new) for name, old, new in pairs if old != new]
    changes += () if same_model(before, after) else _model(before.experiment.model, after.experiment.model)
    changes += _settings(before.experiment, after.experiment)
    changes += _other_lines(*texts, {change.what for change in changes})
    if (more := len(changes) - _MOST_CHANGES) > 0:
        left_out = SettingChange(what=f"{more} more settings differ", before="", after="")
        return (*changes[:_MOST_CHANGES], left_out)
    return tuple(changes)


def plan_text(experiment: Experiment) -> str:
    """The plan in its text form."""
    return str(experiment.plan) if experiment.plan else UNKNOWN


def batch_text(experiment: Experiment) -> str:
    """``256 sequences of 8,192 tokens, bf16``."""
    workload = experiment.workload
    if not workload.global_batch:
        return UNKNOWN
    return plain(batch_size(workload) + (f", {workload.precision}" if workload.precision else ""), 200)


def hardware_text(experiment: Experiment) -> str:
    """``v5p-512, 4x8x8, 256 devices``."""
    return plain(describe_hardware(experiment.hardware, experiment.hardware.devices), 200)


def model_text(experiment: Experiment) -> str:
    """``llama3.1-70b, 80 layers, width 8192``."""
    return plain(describe_model(experiment.model), 200)


def _model(before: Architecture | None, after: Architecture | None) -> list[SettingChange]:
    old, new = (model.model_dump() if model else {} for model in (before, after))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return [
        SettingChange(what=f"model {key}".replace("_", " "), before=_value(old.get(key)), after=_value(new.get(key)))
        for key in keys
    ]


def _settings(before: Experiment, after: Experiment) -> list[SettingChange]:
    old, new = before.hyperparameters, after.hyperparameters
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key) and key not in _NO_SETTING]
    changed = {key: (_value(old.get(key), key), _value(new.get(key), key)) for key in keys}
    twice = {key for key in keys if "." in key and changed.get(key.rpartition(".")[2]) == changed[key]}
    kept = ((key, was, is_) for key, (was, is_) in changed.items() if key not in twice)
    return [SettingChange(what=plain(key, 80), before=was, after=is_) for key, was, is_ in kept]


_OPTION = re.compile(r"\n|\s(?=--\w|[+~]*\"?[\w.-]+=[^\s=])", re.ASCII)
_SETS = re.compile(
    r"[-+~:\"'\s]*(\$\{)?([\w.-]*)[\"']?(?:\s*:?[:=]\s*|\s+|$)(.*?)(?(1)\}[\"']?)[\s\\,]*", re.ASCII | re.DOTALL
)


def _other_lines(before: str, after: str, named: Collection[str]) -> Iterator[SettingChange]:
    """Changed lines of a file, and options of a command, that are no setting of ``named``."""
    leaves = {name.rpartition(".")[2].replace("-", "_") for name in named}
    old, new = _options(before), _options(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for tag, start, end, first, last in matcher.get_opcodes() if max(len(old), len(new)) < MOST_LINES else ():
        for one, other in itertools.zip_longest(old[start:end], new[first:last]) if tag != "equal" else ():
            if one and other and one[0] == other[0]:
                changed = [(one[0], one[1], other[1])]
            else:
                changed = [(one[0], one[1], None)] if one else []
                changed += [(other[0], None, other[1])] if other else []
            for key, was, is_ in changed:
                if key.rpartition(".")[2].replace("-", "_") not in leaves:
                    yield SettingChange(what=plain(key, 80), before=_value(was, key), after=_value(is_, key))


def _options(text: str) -> list[tuple[str, str]]:
    """Key and value of each line and option; a line without a key is a value of ``line``."""
    pieces = [piece for piece in _OPTION.split(text) if piece.strip() and not piece.lstrip().startswith(("#", "//"))]
    return [(match[2] or "line", match[3]) for piece in pieces if (match := _SETS.fullmatch(piece))]


def _value(value: object, key: str = "") -> str:
    return "not set" if value is None else plain(redacted(str(strip_secrets({key: value})[key])), 80)


_MOST_NOTES = 12
_MOST_LINES = 8
_LONGEST = 500


@dataclass(frozen=True)
class Comparison:
    """Both commits, the policy, and the experiments to link to."""

    before: Revision
    after: Revision
    policy: Policy
    experiments: LinkedExperiments

    def report(self, one: ChangedConfiguration) -> ConfigurationReport | None:
        """Compare one configuration; ``None`` if it turns out not to include a changed file."""
        old = resolve(self.before, one.before, self.policy, self.experiments) if one.before else None
        new = resolve(self.after, one.after, self.policy, self.experiments) if one.after else None
        if one.status == "affected" and new is not None and new.problem is None and not self._differs(new):
            return None
        linked = next((side.linked for side in (new, old) if side is not None and side.linked is not None), None)
        used = linked if linked and all(same_run(it.study, linked) for it in (old, new) if it and it.study) else None
        predictions = _predicted(old, used), _predicted(new, used)
        partial = ConfigurationReport(
            path=printable_path(one.path),
            previous_path=printable_path(one.before) if one.before and one.before != one.path else None,
            status=one.status,
            line=_line(old, new),
            experiment=linked.experiment.id if linked else None,
            before=self._side(old, predictions[0]),
            after=self._side(new, predictions[1]),
            notes=_notes(side.notes if (side := new or old) else ()),
        )
        update = _differences(old, new, predictions) | advice(new, predictions[1].prediction)
        return partial.model_copy(update=update)

    def _differs(self, new: ResolvedConfiguration) -> bool:
        return any(self.before.tree.get(path) != self.after.tree.get(path) for path in new.included)

    def _side(self, resolved: ResolvedConfiguration | None, predicted: SidePrediction) -> Side | None:
        if resolved is None:
            return None
        study = resolved.study
        if study is None:
            problem = resolved.problem
            if problem is not None and problem.unread:
                return Side(unpredicted=problem.message)
            return Side(problem=problem.message if problem else None)
        experiment = study.experiment
        broken = [one.sentence for one in violations(study.plan, study.constraints)] if study.plan else []
        broken += [one.removeprefix(BREAKS).strip(" .") for one in study.warnings if one.startswith(BREAKS)]
        return Side(
            plan=plan_text(experiment), model=model_text(experiment),
            batch=batch_text(experiment), hardware=hardware_text(experiment),
            violations=tuple(plain(why, 500) for why in dict.fromkeys(broken)),
            prediction=summarise(predicted.prediction, study, self.policy.prices) if predicted.prediction else None,
            unpredicted=predicted.reason,
        )  # fmt: skip


def _predicted(resolved: ResolvedConfiguration | None, linked: Study | None) -> SidePrediction:
    return predict_side(resolved.study, linked) if resolved and resolved.study else SidePrediction()


def _differences(
    old: ResolvedConfiguration | None, new: ResolvedConfiguration | None, sides: tuple[SidePrediction, SidePrediction]
) -> dict[str, object]:
    if old is None or new is None or old.study is None or new.study is None:
        return {}
    texts = (old.text or "", new.text or "") if not new.path.endswith(LOGS) else ("", "")  # of a log what it settles
    changes = differences(old.study, new.study, texts)
    held = (one.prediction and one.prediction.memory for one in sides)
    died = any(memory and memory.verdict == "does not fit" for memory in held)
    return {
        "changes": changes,
        "not_read": _not_read(old, new) if not changes else None,
        "relative_cost": None if died else relative_cost(old.study, new.study, sides, new.linked or old.linked),
        "precedent": strongest_precedent(old.study, new.study),
    }


def _not_read(old: ResolvedConfiguration, new: ResolvedConfiguration) -> str | None:
    """Which lines changed without changing a setting that is read; ``None`` where none did."""
    if old.text == new.text:
        return None
    lines = changed_lines(old.text, new.text)
    shown = ", ".join(map(str, lines[:_MOST_LINES])) + (", …" if len(lines) > _MOST_LINES else "")
    return f"what changed sets nothing that is read (line{'s' if len(lines) > 1 else ''} {shown})"


def advice(new: ResolvedConfiguration | None, expected: Prediction | None) -> dict[str, object]:
    """What every report says of a configuration, from the step that is expected of it, and each proposal as a change of
    its file."""
    study = new.study or new.without_mesh if new else None
    if new is None or study is None:
        return {}
    start = anchor_to_measurement(study, new.linked) if new.linked and new.linked.plan == study.plan else study
    if start is study and expected is not None and expected.method == "anchored_architecture":
        start = start_from(study, expected)
    found = proposals_for(start)
    said = summary_of(assemble(start, found, "", ""))
    points = (text if label == WHY else f"{label}: {text}" for label, text in said.points(full=True))
    return {
        "suggestions": tuple(suggestion(proposal, new, study) for proposal in found.proposals),
        "recommendation": plain(said.verdict, _LONGEST),
        "lines": "\n".join(map(plain_lines, said.lines)),
        "plans": tuple(tuple(plain(cell, _LONGEST) for cell in row) for row in (said.columns, *said.rows)),
        "why": tuple(plain(one, _LONGEST) for one in (said.finding, *points, said.legend) if one),
        "notes": _notes((*new.notes, *said.warnings)),
    }


def _line(old: ResolvedConfiguration | None, new: ResolvedConfiguration | None) -> int:
    if new is None:
        return 1
    if new.problem is not None and new.problem.line:
        return new.problem.line
    return changed_lines(old.text if old else None, new.text)[0]


def _notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(plain(note, _LONGEST) for note in dict.fromkeys(notes))[:_MOST_NOTES]


def strongest_precedent(before: Study, after: Study) -> Precedent | None:
    """The weightiest precedent of such a change of plan, failures first; ``None`` if none is similar enough."""
    if before.plan is None or after.plan is None or before.plan == after.plan:
        return None
    weighed = [(precedent_prior(hit, before.plan, after.plan), hit) for hit in similar_runs(before, SIMILAR_RUNS)]
    relevant = [(weight, hit) for weight, hit in weighed if abs(weight) >= LEAST_WEIGHT]
    if not relevant:
        return None
    hit = min(relevant, key=lambda pair: (pair[0] > 0, -abs(pair[0])))[1]
    record, sentence = hit.record, plain(precedent_sentence(hit, before.plan, after.plan), 500)
    return Precedent(id=record.id, title=plain(record.title, 400), outcome=record.outcome.value, supports=sentence)
