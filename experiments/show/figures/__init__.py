"""Figures: each module draws one kind of figure from plain values, and describes the figure's content in words.

``style`` and ``panels`` have the parts that all figures share. ``house.mplstyle`` is the style of all figures.
matplotlib's constrained layout places the parts. A panel without data shows a sentence. A gate is a check of the
measurements. In most figures, a value that a gate refuses is a cross, in the colour of its line. A ratio without a
verdict is grey and hollow.
"""
