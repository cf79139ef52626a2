"""How far predictions can be believed: the calibration as data, its region, and what a measured run tells of others."""
