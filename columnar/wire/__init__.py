"""Translation between bytes and calls: detection, framing, codecs, connections.  Knows no table and no region."""
