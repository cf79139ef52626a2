"""The reader of XPlane files: planes, lines, and the events of a line as columns."""
