"""Anything that holds a table → standardised cells, and a list of what was changed.

::

    read        which kind of table it is           formats · textfile · anndata · labelled · limit · examples
    columns     text, numbers and categories        spelling
    prepare     what the network sees of it, by way of

        gaps          infinite values, codes, missing cells
        rows          neighbours that resemble each other, copies
        draws         an order of rows, and those that are shown
        standard      mean 0, variance 1
        dither        noise on columns of two levels
        peaks         narrow peaks, stretched
        oddities      what its owner should know            spread
        domain        how far it is from tables of training

    interventions    which cells were set
    table, notes     the table on its way, and what was done to it
"""
