"""A recorded session, run again offline and compared."""
