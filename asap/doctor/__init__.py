"""Whether ASAP can work here, and what to do where it cannot."""
