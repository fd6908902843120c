"""A catalog that several processes share; no process can leave it half-changed or locked, however it ends."""
