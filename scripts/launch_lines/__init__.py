"""Lines to paste, asked of the launchers that they are for."""
