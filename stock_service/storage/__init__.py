"""Catalogs that survive a restart. Only the mains name them.

``sqlite.py`` is the catalog in a file, and ``sqlite_file.py`` its file. ``sqlite_place.py`` has the names, locks and
copies of the file, and ``sqlite_log.py`` checks the log of a killed server. ``command.py`` is for a file that no server
has open. ``postgres.py`` is the catalog that several servers share, and ``postgres_session.py`` has its tables and
statements. Both catalogs use ``change.py``: changes that wait, and the outcome of a group of them.
"""
