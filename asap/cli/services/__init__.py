"""ASAP in other programs: pull requests, MCP."""
