"""Methods that do one thing each, well or badly; processes of the benchmark load them as ``toys:Name``."""

import ctypes
import os
import signal
import subprocess
import sys
import time

import numpy as np

from graphbam.benchmarks.baselines import Answer, Baseline

TINY = 3
"""Variables of the table that methods warm up with: there, toys behave."""


class Correlation(Baseline):
    """|Correlation|, cut at 0.3; the graph has an arrow from the earlier to the later column."""

    name, title, kind = "toy-correlation", "Correlation", "dag"

    def fit(self, x_md, *, seed):
        score_dd = np.abs(np.corrcoef(x_md.T))
        np.fill_diagonal(score_dd, 0)
        return Answer(np.triu(score_dd > 0.3), score_dd)


class Noise(Correlation):
    """Answers from its seed alone."""

    name, title, kind = "toy-noise", "Noise", "undirected"

    def fit(self, x_md, *, seed):
        upper_dd = np.triu(np.random.default_rng(seed).random((x_md.shape[1],) * 2), 1)
        return Answer((upper_dd + upper_dd.T) > 0.8, upper_dd + upper_dd.T)


class Knowing(Correlation):
    """Takes gaps and targets: an arrow from the first variable to every other one that was set, and nothing else."""

    name, title, reads_gaps, reads_targets = "toy-knowing", "Knowing", True, True

    def fit(self, x_md, *, seed, set_md=None):
        graph_dd = np.zeros((x_md.shape[1],) * 2, np.int8)
        if set_md is not None:
            graph_dd[0, 1:] = set_md[:, 1:].any(axis=0)
        return Answer(graph_dd, graph_dd.astype(float))


class Slow(Correlation):
    """Takes a moment, and leaves its seed and the process it works for where TOY_DIARY says."""

    name, title = "toy-slow", "Slow"

    def fit(self, x_md, *, seed):
        if x_md.shape[1] > TINY:
            with open(os.environ.get("TOY_DIARY", os.devnull), "a") as diary:
                diary.write(f"{seed} {os.getppid()}\n")
            time.sleep(0.15)
        return super().fit(x_md, seed=seed)


class Sleeper(Correlation):
    """Never comes back from ten variables or more, nor does a process that it starts."""

    name, title = "toy-sleeper", "Sleeper"

    def fit(self, x_md, *, seed):
        if x_md.shape[1] >= 10:
            child = subprocess.Popen(["sleep", "300"])
            with open(os.environ.get("TOY_DIARY", os.devnull), "a") as diary:
                diary.write(f"{os.getpid()} {child.pid}\n")
            self.sleep()
        return super().fit(x_md, seed=seed)

    def sleep(self):
        time.sleep(300)


class Stubborn(Sleeper):
    """Sleeps in compiled code that lets no other thread of Python run."""

    name, title = "toy-stubborn", "Stubborn"

    def sleep(self):
        ctypes.PyDLL(None).sleep(300)


class Glutton(Correlation):
    """Takes more and more memory."""

    name, title = "toy-glutton", "Glutton"

    def fit(self, x_md, *, seed):
        kept = []
        while x_md.shape[1] > TINY:
            kept.append(np.ones(2**21))  # 16 MiB
            time.sleep(0.002)
        return super().fit(x_md, seed=seed)


class Raiser(Correlation):
    """Raises."""

    name, title = "toy-raiser", "Raiser"

    def fit(self, x_md, *, seed):
        raise ValueError("no\nluck " * 200)


class Exhausted(Correlation):
    """Runs out of memory by its own account."""

    name, title = "toy-exhausted", "Exhausted"

    def fit(self, x_md, *, seed):
        raise MemoryError("too large")


class Decliner(Correlation):
    """Declines, and says why."""

    name, title, package = "toy-decliner", "Decliner", "numpy"

    def skip(self, n_samples, n_variables):
        return f"{n_samples} samples of {n_variables} variables are not to its taste"


class Crasher(Correlation):
    """Takes its process with it."""

    name, title = "toy-crasher", "Crasher"

    def fit(self, x_md, *, seed):
        os.kill(os.getpid(), signal.SIGSEGV)


class Quitter(Correlation):
    """Calls sys.exit."""

    name, title = "toy-quitter", "Quitter"

    def fit(self, x_md, *, seed):
        sys.exit("enough")


class Liar(Correlation):
    """Returns what is no answer, and cannot even be sent."""

    name, title = "toy-liar", "Liar"

    def fit(self, x_md, *, seed):
        return lambda: 42


class Chatterbox(Correlation):
    """Prints through every door there is."""

    name, title = "toy-chatterbox", "Chatterbox"

    def fit(self, x_md, *, seed):
        print("from Python")
        os.write(1, b"from below\n")
        os.system("echo from a child")
        return super().fit(x_md, seed=seed)


class Threads(Correlation):
    """Answers with the number of threads it is allowed as its score."""

    name, title = "toy-threads", "Threads"

    def fit(self, x_md, *, seed):
        raise RuntimeError(f"{os.environ['OMP_NUM_THREADS']} {os.environ['OPENBLAS_NUM_THREADS']}")


class Peaky(Correlation):
    """Takes 160 MiB for a moment from twenty variables on."""

    name, title = "toy-peaky", "Peaky"

    def fit(self, x_md, *, seed):
        if x_md.shape[1] >= 20:
            np.ones(20 * 2**20)
        return super().fit(x_md, seed=seed)


class Sluggish(Correlation):
    """Takes its time for tiny tables."""

    name, title = "toy-sluggish", "Sluggish"

    def fit(self, x_md, *, seed):
        if x_md.shape[1] <= TINY:
            time.sleep(60)
        return super().fit(x_md, seed=seed)
