from asap.experiments import HardwareReference
from asap.history import HistoryRecord, Source
from asap.plans import Plan


def precedent(name, before, after, outcome, speedup):
    """A move that another run on the chips of ``paper-v6e-16`` made."""
    return HistoryRecord(
        id=name, title=f"{name}\x1b[31m", hardware=HardwareReference(chip="v6e", devices=16),
        before=Plan.parse(before), after=Plan.parse(after), bottleneck="hbm", outcome=outcome, speedup=speedup,
        summary="A run on the same chips.", source=Source(text="a colleague"), confidence=1.0,
    )  # fmt: skip
