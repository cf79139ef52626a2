"""What an analysis draws on: records, profiles, traces, precedents, notes."""
