"""Settings, and whether ASAP can work here."""
