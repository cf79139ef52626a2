"""Reasons, impacts, trade-offs and confidence of a proposal, and where its modelled time goes."""
