"""WikiBench: replay a Wikipedia-style trace against any wiki, open loop."""
