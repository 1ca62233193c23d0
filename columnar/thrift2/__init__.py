"""The Thrift 2 service: its structs to the operations that are behind Thrift 1 too, and back."""
