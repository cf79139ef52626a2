"""XProf's conversion of a run, and what is read of a profile without it."""
