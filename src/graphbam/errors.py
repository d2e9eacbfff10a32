"""The errors graphbam raises, all under one root.

::

    GraphbamError
    ├── ConfigError        a setting is outside what it may be
    ├── GraphError         a graph is not of the kind the question needs
    ├── TableError         a table cannot be read or used
    ├── KnowledgeError     prior knowledge contradicts itself
    └── WeightsError       a weights file or checkpoint is damaged or does not fit

Each message says what was found, where, and what to do.
"""


class GraphbamError(ValueError):
    """Root of every error a user can cause."""


class ConfigError(GraphbamError):
    """A setting is outside what it may be."""


class GraphError(GraphbamError):
    """A graph is not of the kind the question needs."""


class TableError(GraphbamError):
    """A table cannot be read or used."""


class KnowledgeError(GraphbamError):
    """Prior knowledge contradicts itself."""


class WeightsError(GraphbamError):
    """A weights file or checkpoint is damaged, or does not fit the network."""
