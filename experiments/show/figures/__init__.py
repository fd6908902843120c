"""Figures: each module draws one kind of figure from plain values, and gives its content in words.

``house.mplstyle`` is their style. matplotlib's constrained layout places all parts. No figure is empty: a value without
a verdict is grey and hollow, a refused one a grey cross, and a panel without data says so.
"""
