"""Users: who somebody is, and what a user may do."""
