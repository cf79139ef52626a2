"""Profiles of XLA, and the facts that they yield."""

from asap.profiles.locate import locate, read_profile
from asap.profiles.profile import Collective, Gap, Kpis, Operation, Profile, ProfileRun, Roofline

__all__ = ["Collective", "Gap", "Kpis", "Operation", "Profile", "ProfileRun", "Roofline", "locate", "read_profile"]
