"""From the facts of a profile to findings: what holds the run back, and which facts say so."""

from asap.diagnosis.diagnose import diagnose
from asap.diagnosis.diagnosis import Bottleneck, Cause, Diagnosis, Evidence, Finding

__all__ = ["Bottleneck", "Cause", "Diagnosis", "Evidence", "Finding", "diagnose"]
