"""``python -m experiments compare A B``: which of two servers answers sooner, and by how much."""
