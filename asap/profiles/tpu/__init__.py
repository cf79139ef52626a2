"""XProf's tables of a TPU profile, made here from its events: as exact, ten times faster, in a fraction of the memory.

Each file follows the converter of openxla/xprof that it names. What it does not know is left to XProf.
"""
