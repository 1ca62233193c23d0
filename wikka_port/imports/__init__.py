"""Readers of other wikis: folders of Markdown files, and what they share with later readers.

Each reader is a ``importer.PartSource``, with a source of files beside it.  ``source_forms`` guesses which reader a
folder or a file needs.
"""
