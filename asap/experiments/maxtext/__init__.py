"""MaxText configurations: settings, the architecture they describe, and the experiment they make."""
