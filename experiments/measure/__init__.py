"""How blocks are measured: server processes, client processes, slices by turns, and the order of it all."""
