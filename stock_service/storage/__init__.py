"""Catalogs that survive a restart. Only the mains name them.

``sqlite.py`` is the catalog, ``sqlite_file.py`` its file, ``command.py`` what is done with a file that nobody serves.
Beside the file are its name and its log, ``sqlite_place.py``, and copies of it, ``sqlite_copy.py``.
"""
