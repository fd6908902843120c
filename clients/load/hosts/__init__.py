"""A load from many hosts: the plan's shares, the cluster that runs them, and their sum. ``cluster`` and ``share`` load
Dask."""
