"""Change streams: readers outside the store that pull the changes of a table, and keep their own positions."""
