"""A catalog that several processes share. When a process ends, even by SIGKILL, the catalog stays whole and
unlocked.
"""
