"""HTTP/1.1 as a load generator wants it: answers as values, a few microseconds each; it knows nothing of traces."""
