"""A replay's figures for people: pages, drawings, tables in CSV, and the page of a running replay."""
