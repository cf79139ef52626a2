"""Answers on techniques: whether one pays, and two set against each other."""
