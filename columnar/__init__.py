"""Columnar: a wide-column store that speaks the Thrift API of HBase."""

from columnar.runtime.compiled import install as _use_compiled_twins

_use_compiled_twins()  # before any other module of ours is imported
