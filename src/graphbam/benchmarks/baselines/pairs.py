"""Methods for two variables: which is the cause? Each gives a score, larger for the likelier direction."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from graphbam.benchmarks.baselines._base import Answer, Baseline, Matrix
from graphbam.benchmarks.baselines._isolation import isolated


class PairMethod(Baseline):
    """One number for x → y and one for y → x; the larger wins, the difference is how sure it is."""

    kind = "dag"

    def skip(self, n_samples: int, n_variables: int) -> str | None:
        """They are for two variables."""
        many = "is a method for two variables, one of which causes the other" if n_variables != 2 else None
        return super().skip(n_samples, n_variables) or many

    def fit(self, x_md: Matrix, *, seed: int) -> Answer:
        with isolated(seed):
            forward = self.score(x_md[:, 0], x_md[:, 1]) - self.score(x_md[:, 1], x_md[:, 0])
        lean_dd = np.array([[0.0, forward], [-forward, 0.0]])
        return Answer((lean_dd > 0).astype(np.int8), lean_dd)

    @abstractmethod
    def score(self, cause_m: Matrix, effect_m: Matrix) -> float:
        """How well the second follows from the first, the larger the better."""


class Anm(PairMethod):
    """Additive noise (Hoyer and others 2009): −log HSIC of the cause and the residuals of a Gaussian process.

    Its kernel is fitted to 200 of the rows.
    """

    name, title = "anm", "ANM"
    package, module = "lingam", "lingam"

    def __init__(self, *, most_rows: int = 200) -> None:
        self.most_rows = most_rows

    def score(self, cause_m: Matrix, effect_m: Matrix) -> float:
        from lingam.hsic import hsic_test_gamma
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

        kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(1.0, (1e-2, 1e2)) + WhiteKernel(0.1, (1e-6, 1e1))
        some = np.linspace(0, len(cause_m) - 1, min(len(cause_m), self.most_rows)).astype(int)
        fitted = GaussianProcessRegressor(kernel).fit(cause_m[some, None], effect_m[some]).kernel_
        process = GaussianProcessRegressor(fitted, optimizer=None).fit(cause_m[:, None], effect_m)
        statistic, _ = hsic_test_gamma(cause_m, effect_m - process.predict(cause_m[:, None]))
        return float(-np.log(max(statistic, 1e-12)))


class Igci(PairMethod):
    """Information geometry (Janzing and others 2012): causes within [0, 1], −mean log |slope| from point to point."""

    name, title = "igci", "IGCI"

    def score(self, cause_m: Matrix, effect_m: Matrix) -> float:
        order = np.lexsort((effect_m, cause_m))
        step, rise = (np.diff(to_unit(values)[order]) for values in (cause_m, effect_m))
        moves = (step != 0) & (rise != 0)
        return float(-np.log(np.abs(rise[moves] / step[moves])).mean()) if moves.any() else 0.0


class Reci(PairMethod):
    """Regression error (Blöbaum and others 2018): −mean square error of a cubic, both variables within [0, 1]."""

    name, title = "reci", "RECI"

    def score(self, cause_m: Matrix, effect_m: Matrix) -> float:
        cause_m, effect_m = to_unit(cause_m), to_unit(effect_m)
        powers_m4 = np.vander(cause_m, 4)
        weight_4, *_ = np.linalg.lstsq(powers_m4, effect_m, rcond=None)
        return float(-np.mean((effect_m - powers_m4 @ weight_4) ** 2))


class Pnl(PairMethod):
    """Post-nonlinear models (Zhang and Hyvärinen 2009): effect = g(f(cause) + noise), −log HSIC of cause and noise.

    g⁻¹ is a sum of steep and shallow steps, always rising; f a small network; both by maximum likelihood, noise being
    Gaussian.
    """

    name, title = "pnl", "PNL"
    package, module = "lingam", "lingam"

    def __init__(self, *, steps: int = 250, units: int = 10) -> None:
        self.steps, self.units = steps, units

    def score(self, cause_m: Matrix, effect_m: Matrix) -> float:
        from lingam.hsic import hsic_test_gamma

        statistic, _ = hsic_test_gamma(cause_m, self.find_noise(cause_m, effect_m))
        return float(-np.log(max(statistic, 1e-12)))

    def find_noise(self, cause_m: Matrix, effect_m: Matrix) -> Matrix:
        """What is left of the effect, once undone its distortion and taken away what the cause explains."""
        import torch

        x_m1, y_m1 = (torch.tensor(values, dtype=torch.float32)[:, None] for values in (cause_m, effect_m))
        torch.manual_seed(0)  # both directions begin alike
        network = torch.nn.Sequential(
            torch.nn.Linear(1, self.units), torch.nn.Tanh(), torch.nn.Linear(self.units, 1)
        )  # fmt: skip
        knots = torch.quantile(y_m1, torch.linspace(0.05, 0.95, self.units)).clone()
        steep, high = (0.1 * torch.randn(2, self.units)).unbind()
        straight = torch.zeros(1)
        free = [straight, knots, steep, high]
        for values in free:
            values.requires_grad_()

        def undo() -> tuple[torch.Tensor, torch.Tensor]:
            """g⁻¹(y) and the logarithm of its slope."""
            rise = torch.tanh(steep.exp() * (y_m1 - knots))
            z_m = straight.exp() * y_m1[:, 0] + (high.exp() * rise).sum(1)
            slope_m = straight.exp() + (high.exp() * steep.exp() * (1 - rise**2)).sum(1)
            return z_m, slope_m.log()

        optimiser = torch.optim.Adam([*free, *network.parameters()], lr=0.02)
        for _ in range(self.steps):
            z_m, log_slope_m = undo()
            noise_m = z_m - network(x_m1)[:, 0]
            loss = noise_m.var().log() / 2 - log_slope_m.mean()  # −log-likelihood; the size of the noise is free
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.no_grad():
            noise_m = undo()[0] - network(x_m1)[:, 0]
        return (noise_m - noise_m.mean()).double().numpy() / max(float(noise_m.std()), 1e-12)


def to_unit(values_m: Matrix) -> Matrix:
    """Values moved and scaled to [0, 1]; all 0 if they are constant.

    Examples
    --------
    >>> to_unit(np.array([2.0, 4.0, 3.0])).tolist()
    [0.0, 1.0, 0.5]
    """
    low, high = values_m.min(), values_m.max()
    return (values_m - low) / (high - low) if high > low else np.zeros_like(values_m)
