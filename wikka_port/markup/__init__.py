"""The wiki's markup, and other markups converted to it."""
