"""From links to arrows: the paper's CPDAG appendix. Numpy only."""
