"""Figures: each module draws one kind of figure from plain values, and describes the figure's content in words.

``house.mplstyle`` is the style of all figures. matplotlib's constrained layout places all parts. No panel is empty: a
panel without data shows a sentence. A value without a verdict is grey and hollow. A value that a gate refuses is a
cross, in the colour of its line; a gate is a check of the measurements.
"""
