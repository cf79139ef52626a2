"""Profiles: the XProf adapter, and the facts that it yields."""

from asap.profiles.fetch import read_profile
from asap.profiles.locate import ProfileRun, locate
from asap.profiles.profile import Collective, Gap, Kpis, Operation, Profile, Roofline

__all__ = [
    "Collective",
    "Gap",
    "Kpis",
    "Operation",
    "Profile",
    "ProfileRun",
    "Roofline",
    "locate",
    "read_profile",
]
