"""Queries on what was measured: operations, roofline, the replay of a trace."""

from typing import Annotated

from pydantic import Field

from asap.answers.figure import CHANGE, Answer, Figure, Part, Query, bare
from asap.answers.inquiries import graph_of
from asap.answers.inquiry import Inquiry
from asap.answers.run_queries import Fact, profile_of
from asap.core.errors import AsapError, NotFoundError
from asap.core.units import Provenance
from asap.profiles import Profile
from asap.study.hlo import hlo_around
from asap.traces.analysis.report import ReplayReport, WhatIfReport

Limit = Annotated[int, Field(ge=1, le=50)]
Changes = Annotated[tuple[str, ...], Field(max_length=8)]


class OperationRow(Part):
    """One operation of the program."""

    name: str
    share: Figure | None
    time: Figure | None
    bound: str
    roofline: Figure | None = Field(default=None, description="of the bound that applies")
    flop_utilisation: Figure | None = None
    category: str
    collective: str | None = None


class OperationsAnswer(Answer):
    """The operations that take the most self time."""

    operations: tuple[OperationRow, ...]
    total: int
    extent: str = Field(description="what times are per")
    source: str


class Operations(Query):
    """List the operations that take the most self time, with what bounds each and how well it uses it. A low FLOP
    utilisation of a collective or of an operation that HBM bounds is no inefficiency of compute."""

    limit: Limit = 10

    def answer(self, inquiry: Inquiry) -> OperationsAnswer:
        """The longest first."""
        profile = profile_of(inquiry.study)
        rows = tuple(operation_row(profile, place) for place in range(min(self.limit, len(profile.operations))))
        return OperationsAnswer(
            operations=rows, total=len(profile.operations), extent=profile.extent, source=profile.source
        )


class OperationAnswer(Answer):
    """All that is known of one operation."""

    operation: OperationRow
    shape: str | None
    code: str | None = Field(description="file and line of the user's code")
    occurrences: float | None
    flops: Figure | None
    bytes_accessed: Figure | None
    flop_rate: Figure | None
    bandwidth: Figure | None
    hlo: tuple[str, ...] = Field(default=(), description="the program around it")
    alike: tuple[str, ...] = Field(default=(), description="other operations of that name")
    not_known: str | None = None


class OperationQuery(Query):
    """Get all that is known of one operation: shape, line of code, FLOPs, bytes, rates, and the program around it: what
    it takes, what uses its result, what a fusion holds."""

    name: Annotated[
        str, Field(min_length=1, max_length=200, description="as `operations` has it, a part, or its place from 1")
    ]

    def answer(self, inquiry: Inquiry) -> OperationAnswer:
        """The first of that name."""
        profile = profile_of(inquiry.study)
        word = self.name.lower()
        found = [place for place, one in enumerate(profile.operations) if word in one.name.lower()]
        if word.isdigit() and 0 < int(word) <= len(profile.operations):
            found = [int(word) - 1]
        if not found:
            raise NotFoundError("no such operation", where=self.name, hint="`operations` lists them")
        first, (source, kind) = profile.operations[found[0]], _origin(profile)
        hlo, lacking = _program(inquiry, first.name)

        def of(name: str, value: float | None, unit: str) -> Figure | None:
            return bare(_subject(found[0]), name, value, unit, source, kind)

        return OperationAnswer(
            operation=operation_row(profile, found[0]),
            shape=first.shape,
            code=first.source,
            occurrences=first.occurrences,
            flops=of("flops", first.flops, "FLOP"),
            bytes_accessed=of("bytes_accessed", first.bytes_accessed, "bytes"),
            flop_rate=of("flop_rate", first.flop_rate, "FLOP/s"),
            bandwidth=of("bandwidth", first.memory_bandwidth, "bytes/s"),
            hlo=hlo,
            alike=tuple(profile.operations[place].name for place in found[1:6]),
            not_known=lacking,
        )


class RooflineAnswer(Answer):
    """Where the whole program stands under the peaks of its device."""

    bound: str
    efficiency: Figure | None
    intensity: Figure | None = Field(description="FLOPs for each byte of HBM")
    ridge_point: Figure | None = Field(description="intensity from which on compute bounds")
    peak_flop_rate: Figure | None
    peak_hbm_bandwidth: Figure | None


class RooflineQuery(Query):
    """Get the peaks of the device and where the whole program stands under them; operations have their own bound."""

    def answer(self, inquiry: Inquiry) -> RooflineAnswer:
        """As the profile has it."""
        profile = profile_of(inquiry.study)
        found, (source, kind) = profile.roofline, _origin(profile)

        def of(name: str, value: float | None, unit: str) -> Figure | None:
            return bare("now", name, value, unit, source, kind)

        return RooflineAnswer(
            bound=found.program_bound,
            efficiency=of("roofline_efficiency", found.program_efficiency, "fraction"),
            intensity=of("intensity", found.operational_intensity, "FLOP/byte"),
            ridge_point=of("ridge_point", found.ridge_point, "FLOP/byte"),
            peak_flop_rate=of("peak_flop_rate", found.peak_flop_rate, "FLOP/s"),
            peak_hbm_bandwidth=of("peak_hbm_bandwidth", found.peak_hbm_bandwidth, "bytes/s"),
        )


class PathRow(Part):
    """A part of the critical path."""

    name: str
    time: Figure | None
    share: Figure | None


class TraceAnswer(Answer):
    """The recorded run, replayed, or replayed with changes."""

    step_time: Figure | None
    replayed: Figure | None = None
    predicted: Figure | None = Field(default=None, description="with the changes")
    differs: Figure | None = None
    quality: str
    critical_path: tuple[PathRow, ...] = ()
    shortened_by: tuple[Fact, ...] = Field(default=(), description="what would shorten the step, and by how much")
    notes: tuple[str, ...] = ()


class Trace(Query):
    """Replay the recorded run: its critical path and what would shorten it; with changes, predict its step time. Needs
    a profile or trace. Another plan, model or batch is a rough guess there."""

    changes: Changes = Field(
        default=(),
        description="made together: remove:host, scale:all-reduce=0.5, overlap:communication, plan:data=4 model=4, "
        "layers=48, sequence=4096, batch=512, microbatches=8, schedule=1f1b, chip=h100, ranks=16",
    )
    limit: Limit = 8

    def answer(self, inquiry: Inquiry) -> TraceAnswer:
        """The replay."""
        from asap.traces.summary import report_replay, what_if_report

        graph, changes = graph_of(inquiry.study), list(self.changes)
        if changes:
            from asap.prediction.from_trace.predict import what_if

            return _changed(what_if_report(graph, changes, what_if(graph, changes, inquiry.study)))
        return _replayed(report_replay(graph), self.limit)


def _replayed(report: ReplayReport, limit: int) -> TraceAnswer:
    measured = report.step_time_s.measured_s
    return TraceAnswer(
        step_time=_of_trace("step_time", measured, "s"),
        replayed=_of_trace("replayed_step_time", report.step_time_s.replayed_s, "s", Provenance.MODELLED),
        quality=report.quality.verdict,
        critical_path=tuple(
            PathRow(
                name=one.name,
                time=_of_trace(f"path.{number}.time", one.time_s, "s"),
                share=_of_trace(f"path.{number}.share", one.share, "fraction"),
            )
            for number, one in enumerate(report.critical_path[:limit], 1)
        ),
        shortened_by=tuple(
            Fact(
                fact=one.change,
                figure=_of_trace(f"{one.change}.step_time", one.step_time_s, "s", Provenance.MODELLED),
            )
            for one in report.shortened_by
        ),
        notes=tuple(report.notes[:limit]),
    )


def _changed(report: WhatIfReport) -> TraceAnswer:
    subject, then = ",".join(report.changes), report.step_time_s
    predicted = Figure(
        id=f"{subject}.step_time", value=then.value, low=then.low, high=then.high, unit="s",
        provenance=Provenance.MODELLED, source="replay of the recorded run",
    )  # fmt: skip
    ratio = then.value / report.measured_s - 1 if report.measured_s else None
    return TraceAnswer(
        step_time=_of_trace("step_time", report.measured_s, "s"),
        predicted=predicted,
        differs=bare(subject, "vs_now", ratio, CHANGE, "replay of the recorded run", Provenance.MODELLED),
        quality=report.quality.verdict,
        notes=tuple(report.notes),
    )


def _of_trace(name: str, value: float, unit: str, kind: Provenance = Provenance.MEASURED) -> Figure | None:
    return bare("trace", name, value, unit, "the recorded run", kind)


def operation_row(profile: Profile, place: int) -> OperationRow:
    """The operation at a place, from 0, as a row."""
    operation, (source, kind) = profile.operations[place], _origin(profile)

    def of(name: str, value: float | None, unit: str = "fraction") -> Figure | None:
        return bare(_subject(place), name, value, unit, source, kind)

    return OperationRow(
        name=operation.name,
        share=of("share", operation.fraction),
        time=of("time", operation.time_s, "s"),
        bound="opaque" if operation.opaque else operation.bound,
        roofline=of("roofline", operation.roofline_efficiency),
        flop_utilisation=of("flop_utilisation", operation.flop_utilisation),
        category=operation.category,
        collective=operation.collective,
    )


def _subject(place: int) -> str:
    return f"operation_{place + 1}"


def _origin(profile: Profile) -> tuple[str, Provenance]:
    return profile.source, profile.provenance


def _program(inquiry: Inquiry, name: str) -> tuple[tuple[str, ...], str | None]:
    """The program around an operation, or why it is not known."""
    try:
        return hlo_around(inquiry.study, name), None
    except AsapError as error:
        return (), error.message
