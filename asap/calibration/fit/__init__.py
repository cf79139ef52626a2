"""From published runs to the constants and intervals of the prediction."""
