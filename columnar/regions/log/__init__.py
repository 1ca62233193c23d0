"""The change log of a region: its records, their retention, and the logs of dead servers that the region lacks."""
