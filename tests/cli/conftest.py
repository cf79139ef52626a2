from tests.cases import kept

DECODER = kept(__file__)["DECODER"]
"""A configuration of MaxText without a mesh."""
