"""What people ask next of a result; each is a method of `graphbam.result.Result`.

::

    blanket     which variables tell all there is to tell about one      result.markov_blanket("y")
    reasons     what speaks for and against a link                       result.why("a", "b")
    sizes       signs and rough sizes of links                           result.effects()
    roles       what adjusts for what, if a acts on b                    result.roles("a", "b")
    comparison  two answers side by side, or an answer and the truth     result.compare(other), result.score(truth)
    rows        correlations and residuals of the rows that a result keeps
"""
