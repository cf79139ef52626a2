"""Sharding configurations: axes, text form, validity, enumeration, MaxText overrides."""

from asap.plans.plan import AXES, Mesh, Plan, Remat

__all__ = ["AXES", "Mesh", "Plan", "Remat"]
