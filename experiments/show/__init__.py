"""Results for readers: sentences, tables, figures, a report, a notebook's cells. Measures and judges nothing.

Questions, claims, figures and sections come as arguments (``content``): no module here names a study or a transport.
"""
