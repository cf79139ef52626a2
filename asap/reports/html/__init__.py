"""The report as one file that needs nothing else: no network, no server, no folder beside it."""

from asap.reports.html.page import render_page

__all__ = ["render_page"]
