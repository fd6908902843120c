"""A catalog that several processes share. A process that ends in any way leaves the catalog whole and unlocked."""
