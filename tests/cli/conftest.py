from tests.cases import kept

KEPT = kept(__file__)
DECODER = KEPT["DECODER"]
"""A configuration of MaxText without a mesh."""
