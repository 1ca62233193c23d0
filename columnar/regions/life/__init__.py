"""The life of a region at its server: assigned, opened, served, closed."""
