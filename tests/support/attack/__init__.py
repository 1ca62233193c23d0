"""Attacks on a wiki: payloads, the places in a text for payloads, and a browser that notes what runs."""
