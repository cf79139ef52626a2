"""Sharding configurations: axes, text form, validity, enumeration, settings of launchers."""

from asap.plans.axes import AXES
from asap.plans.plan import Mesh, Plan
from asap.plans.remat import Remat

__all__ = ["AXES", "Mesh", "Plan", "Remat"]
