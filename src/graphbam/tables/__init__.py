"""Anything that holds a table → standardised cells, and a list of what was changed."""
