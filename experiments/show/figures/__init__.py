"""Figures: each module draws one kind of figure from plain values, and describes the figure's content in words.

``style`` and ``panels`` have the parts that all figures share, and ``house.mplstyle`` the style. matplotlib's
constrained layout places all parts. A panel without data shows a sentence. A ratio without a verdict is grey and
hollow. A gate is a check of the measurements. In most figures, a value that a gate refuses is a cross, in the colour of
its line.
"""
