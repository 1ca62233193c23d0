"""WikiBench: replay a Wikipedia-style trace against any wiki, open loop."""

__version__ = "0.1.0"
