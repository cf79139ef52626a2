"""Plans and programs: predict, compile, check."""
