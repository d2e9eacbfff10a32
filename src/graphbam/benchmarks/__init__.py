"""The judge: many methods, the same tables, one tidy file of results.

::

    cases       which tables, by name, and the tables themselves
    baselines/  which methods, by name; one small file per method
    run         the plan of fits, and where they run: one row per fit
    worker      one fit in a process of its own, watched and, if need be, killed
    scores      an answer against the truth
    store       the folder of a run: settings, journal, results
    report/     results → figures, one page, tables
"""
