"""The closed loop: evaluate a configuration, learn from what came of it, propose the next, stop in time.

A configuration is its text: the line of a plan, or a mapping program. The loop knows nothing else of what is tuned.
"""
