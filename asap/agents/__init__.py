"""The agents: google-adk, the tools over the engine, and the built-in model. Nothing here is imported early."""
