"""Figures: each module draws one kind, from plain values, and says in words what it shows.

``house.mplstyle`` is how they look; matplotlib's constrained layout places everything. No figure is empty: what carries
no verdict or is refused is grey and hollow, and a panel without data says so.
"""
