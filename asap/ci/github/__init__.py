"""GitHub: its API, events, the sticky comment and the workflow templates."""
