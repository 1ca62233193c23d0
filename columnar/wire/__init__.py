"""From bytes to calls and back: detection, framing, codecs, connections.  Knows no table and no region."""
