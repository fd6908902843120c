"""Results for readers: sentences, tables, figures, reports and the cells of notebooks. Measures and judges nothing.

Questions, claims, figures and sections are arguments of the functions here (``content``). So no module here names a
study or a transport.
"""
