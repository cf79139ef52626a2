"""Profiles: the XProf adapter, and the facts that it yields."""

from asap.profiles.fetch import fetch_kpis, fetch_operations, fetch_roofline, read_profile
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
    "fetch_kpis",
    "fetch_operations",
    "fetch_roofline",
    "locate",
    "read_profile",
]
