"""Which published sources may decide what."""

KEPT_OUT = ("internevo", "mlperf_training", "ms_swift", "torchprime")
"""Sources that no fit, no choice of a variant and no interval may use: the last check before a release.

They were drawn before anything was fitted: of the ten sources that were collected last, the four whose names have the
smallest SHA-256. All other sources are fitted, and choices are made on each with the fit that left it out.
"""
