"""The judge: many methods, the same tables, one tidy file of results."""
