"""The networks of the paper's section 2, and their weights on disk. Torch only."""
