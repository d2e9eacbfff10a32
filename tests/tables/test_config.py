"""What can be set about preparing a table."""

import numpy as np
import pytest

from cases import each
from graphbam.errors import ConfigError
from graphbam.tables.config import PrepareConfig


@each("name", ["independent_rows", "keep_codes"])
@each("value", ["no", "True", "", None, 2])
def test_what_is_neither_true_nor_false_is_refused(name, value):
    with pytest.raises(ConfigError, match=rf"{name}={value!r} is not known; choose True or False\."):
        PrepareConfig(**{name: value})
    for flag in (True, np.False_, 1):
        assert getattr(PrepareConfig(**{name: flag}), name) == flag
