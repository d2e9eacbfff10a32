"""`infer`, `infer_many` and `BAM`: read → prepare → network → result."""
