"""Columnar: a wide-column store that speaks the Thrift API of HBase."""
