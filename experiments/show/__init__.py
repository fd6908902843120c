"""Results for readers: sentences, tables, figures, reports and the cells of notebooks. These modules measure and judge
nothing.

A study passes its questions, claims, figures and sections to ``content``. So no module of this package names a study or
a transport.
"""
