"""Which tables there are and which regions they have: the catalogue and what changes it."""
