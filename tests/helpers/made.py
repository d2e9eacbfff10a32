"""Tables that tests make."""

import numpy as np

from graphbam.tables.table import Table


def table_of(x_md, names=None):
    return Table(tuple(names or [f"v{k}" for k in range(x_md.shape[1])]), np.asarray(x_md, float), "a test")
