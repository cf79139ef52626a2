"""``python -m asap``."""

from asap.cli import main

main()
