"""The tables of a store and their regions: the catalogue and the changes of it."""
