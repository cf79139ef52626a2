"""The agents on google-adk: who does what, in which order, and what is logged."""
