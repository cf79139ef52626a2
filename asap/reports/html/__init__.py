"""The report as one file that needs nothing else: no network, no server, no folder beside it."""

from asap.reports.html.page import LogEntry, render_page

__all__ = ["LogEntry", "render_page"]
