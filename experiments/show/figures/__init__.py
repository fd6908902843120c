"""Figures: each module draws one kind of figure from plain values, and describes the content in words.

``house.mplstyle`` is the style of all figures. matplotlib's constrained layout places all parts. No panel is empty: a
panel without data shows a sentence. A value without a verdict is grey and hollow. A refused value is a cross, in the
colour of its line.
"""
