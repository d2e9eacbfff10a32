"""The vocabulary: graphs, equivalence classes, prior knowledge, scores. Numpy only."""
