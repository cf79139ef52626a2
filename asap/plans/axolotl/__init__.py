"""A plan in Axolotl's settings, both ways."""
