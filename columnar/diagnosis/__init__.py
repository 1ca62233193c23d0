"""Facts of a store and its machine, the findings in them, and the archive that takes both to other people."""
