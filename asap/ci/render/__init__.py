"""A report as comment, SARIF, workflow summary or artifact."""
