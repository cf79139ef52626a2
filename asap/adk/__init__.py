"""The agents and the chat for google-adk's own command line."""
