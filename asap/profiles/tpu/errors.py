"""What only XProf can read."""


class UnfamiliarError(Exception):
    """A profile that holds something which is not known here; it never leaves this room."""
