"""A load from many hosts: the shares of the plan, the cluster that runs the shares, and the sum of the results.
``cluster`` and ``share`` load Dask."""
