"""Catalog in memory that several processes share. If a process ends, even by SIGKILL, the catalog is consistent and
unlocked afterwards.
"""
