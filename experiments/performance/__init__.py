"""``python -m experiments performance``: what performance is aimed at, and what is reached, side by side."""
