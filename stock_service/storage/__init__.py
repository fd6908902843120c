"""Catalogs that survive a restart. Only the mains name them.

``sqlite.py`` is the catalog in a file, ``sqlite_file.py`` its file, ``command.py`` what is done with a file that nobody
serves. Beside the file are its name, its log and its copies, ``sqlite_place.py``, and what a killed server left in the
log, ``sqlite_log.py``. ``postgres.py`` is the catalog that several servers share, ``postgres_session.py`` has its
tables and statements. ``change.py`` is of both: what waits, and what a group of it would leave.
"""
