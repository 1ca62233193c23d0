"""Addresses of a wiki: how each kind of wiki spells them, and how one spelling becomes another."""
