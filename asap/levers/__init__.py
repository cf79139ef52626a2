"""Levers: what decides a step beside the meshes, one entry in one table."""
