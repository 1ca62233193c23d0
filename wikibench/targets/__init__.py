"""The wiki under test: where it is, how its pages and forms are made, who signs in; it knows nothing of traces."""
