"""Catalogs that survive a restart of the server. Only the main programs import these modules.

``sqlite.py`` is the catalog in a file, and ``sqlite_file.py`` reads and writes the file. ``sqlite_place.py`` has the
file's names, locks and copies. ``sqlite_log.py`` checks the write-ahead log of a killed server. ``command.py`` has the
commands on a file that no server has open. ``postgres.py`` is the catalog that several servers share, and
``postgres_session.py`` has the tables and statements of this catalog. Both catalogs use ``change.py``: waiting changes,
and the outcome of a group of changes.
"""
