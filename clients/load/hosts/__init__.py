"""Load from many hosts: the share of each host, the cluster that runs the shares, and the sum of the results. The
modules ``cluster`` and ``share`` import Dask."""
