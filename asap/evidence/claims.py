"""What can be stated of a run or of a plan."""

from enum import StrEnum


class Claim(StrEnum):
    """What is stated."""

    OUT_OF_MEMORY = "ran out of memory"
    FITS = "fits into memory"
    FAILED = "failed"
    SLOWER = "was slower"
    FASTER = "was faster"
    STEP_TIME = "measured step time"
    RELATIVE = "measured step time against what runs"
    BATCH = "global batch"
    SEQUENCE = "sequence length"
    INCUMBENT = "plan that runs"
    MFU = "measured MFU"
    THROUGHPUT = "measured tokens per second"
    HBM_SHARE = "HBM in use"
    HBM_BYTES = "HBM in use, bytes"
    CONSTRAINT = "constraint"


EXCLUDING_CLAIMS = {Claim.OUT_OF_MEMORY, Claim.FAILED, Claim.SLOWER}
"""A plan of which this is known is not proposed again."""

RUN_CLAIMS = {Claim.BATCH, Claim.SEQUENCE, Claim.INCUMBENT}
"""Facts of the run itself."""

MEASURED_CLAIMS = {Claim.STEP_TIME, Claim.RELATIVE, Claim.MFU, Claim.THROUGHPUT, Claim.HBM_SHARE, Claim.HBM_BYTES}
"""Measurements: a later one of the same plan takes the place of an earlier one."""
