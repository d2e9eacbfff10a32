"""Break the package on purpose, one rule at a time, and see whether the tests notice.

    python runs/mutants.py              # all of them: a quarter of an hour on two cores
    python runs/mutants.py --only 7     # one, by its number
    python runs/mutants.py --list       # what they are

Each mutant is one snippet of the source, written differently: a rule flipped, a label exchanged, a sign, an axis, a
threshold. It is applied to a copy of the working tree, and the named tests run there until the first one fails. A
mutant that no test kills says that nobody would notice this mistake. One whose snippet is not found exactly once is out
of date: correct the list. Whoever thins out the tests runs this before and after.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import queue
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/graphbam")
LIMIT_SECONDS = 600


class Mutant(NamedTuple):
    """One mistake."""

    file: str
    """Below src/graphbam, or a script, runs/…"""
    old: str
    """Snippet of the source, there exactly once."""
    new: str
    """What stands there instead."""
    tests: str
    """What must fail, as arguments of pytest."""
    breaks: str
    """What is wrong then."""


class Verdict(NamedTuple):
    """What became of a mutant."""

    kind: str
    """killed, survived or error."""
    detail: str
    """The test that failed, or what went wrong."""


GRAPH, CLASS, METRIC = "tests/graphs/test_graph.py", "tests/graphs/test_equivalence.py", "tests/graphs/test_metrics.py"
EDGES, LAYERS, CHILDREN = "tests/nn/test_edge_net.py", "tests/nn/test_layers.py", "tests/nn/test_immorality_net.py"
FILES, VALUES = "tests/output/test_files.py", "tests/simulation/test_values.py"

MUTANTS = (
    # ── graphs ────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "graphs/graph.py",
        "classes = SKELETON * adjacent + MORAL * married",
        "classes = MORAL * adjacent + SKELETON * married",
        GRAPH,
        "labels of adjacent and of married pairs are exchanged",
    ),
    Mutant(
        "graphs/graph.py",
        "before[node] |= before[edges[node]].any(axis=0)",
        "before[node] |= before[edges[:, node]].any(axis=0)",
        GRAPH,
        "ancestors follow arrows backwards",
    ),
    Mutant(
        "graphs/equivalence.py",
        "if unmarried.any() or (inherited & ~parents).any():",
        "if unmarried.any():",
        CLASS,
        "compelled arrows are not handed on to a child of one parent only",
    ),
    Mutant(
        "graphs/equivalence.py",
        "RULES = (rule_1, rule_2, rule_3, rule_4)",
        "RULES = (rule_1, rule_2, rule_3)",
        CLASS,
        "Meek's rule 4, needed with background knowledge, is missing",
    ),
    Mutant(
        "graphs/equivalence.py",
        "second = links[a] & arrows[:, b].T",
        "second = links[a] & arrows[b]",
        CLASS,
        "rule 4 reads the arrow c → b backwards",
    ),
    Mutant(
        "graphs/knowledge.py",
        "(tier[a] > tier[b] or (tier[a] == tier[b] and not self.within_tiers))",
        "(tier[a] < tier[b] or (tier[a] == tier[b] and not self.within_tiers))",
        "tests/graphs/test_knowledge.py",
        "tiers forbid arrows forwards in time",
    ),
    Mutant(
        "graphs/metrics.py",
        "return int(np.triu(differs | differs.T).sum())",
        "return int(np.triu(differs).sum())",
        METRIC,
        "the structural Hamming distance overlooks half of the directions",
    ),
    Mutant(
        "graphs/metrics.py",
        "last_of_ties = np.append(ranked[1:] != ranked[:-1], True)",
        "last_of_ties = np.ones(len(ranked), dtype=bool)",
        METRIC,
        "average precision depends on the order of ties",
    ),
    Mutant(
        "graphs/metrics.py",
        "return float(np.abs(said - seen) @ number / number.sum())",
        "return float(abs((said - seen) @ number) / number.sum())",
        METRIC,
        "errors of calibration in different bins cancel out",
    ),
    Mutant(
        "graphs/cut.py",
        "expected = np.cumsum((1 - levels) * counts) / np.cumsum(counts)",
        "expected = np.cumsum(1 - levels) / np.cumsum(np.ones_like(counts))",
        "tests/graphs/test_cut.py",
        "a false-discovery target counts pairs of equal probability once",
    ),
    # ── tables ────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "tables/standard.py",
        "reach_n1 = WILD * (high_n1 - low_n1) / _NORMAL_RANGE",
        "reach_n1 = WILD * (high_n1 - low_n1)",
        "tests/tables/test_standard.py",
        "wild values are moved to three times the limit",
    ),
    Mutant(
        "tables/gaps.py",
        "weights = -precision * (1 - eye)",
        "weights = precision * (1 - eye)",
        "tests/tables/test_gaps.py",
        "gaps are filled with the wrong sign",
    ),
    Mutant(
        "tables/rows.py",
        "worth = n_drawn / (1 + redundancy * n_drawn / n_samples)",
        "worth = n_drawn / (1 + redundancy)",
        "tests/tables/test_rows.py",
        "rows that were thinned out still count as repeating each other",
    ),
    Mutant(
        "tables/rows.py",
        "product = (rho_d.sum() ** 2 - (rho_d**2).sum()) / n_pairs",
        "product = (rho_d.sum() ** 2 - (rho_d**2).sum()) / n_variables",
        "tests/tables/test_rows.py",
        "the redundancy of rows is a sum over pairs of columns instead of a mean",
    ),
    Mutant(
        "tables/domain.py",
        "return (value < low and name not in _HARMLESS_BELOW) or (value > high and name not in _HARMLESS_ABOVE)",
        "return (value < low and name not in _HARMLESS_ABOVE) or (value > high and name not in _HARMLESS_BELOW)",
        "tests/tables/test_domain.py",
        "the harmless side of a range raises the alarm",
    ),
    Mutant(
        "tables/columns.py",
        "key=lambda word: (-counts[word], word)",
        "key=lambda word: (counts[word], word)",
        "tests/tables/test_read.py",
        "the rarest level of a text column is coded 0",
    ),
    Mutant(
        "tables/labelled.py",
        "marked[place[source], place[target]] = 1",
        "marked[place[target], place[source]] = 1",
        "tests/tables/test_labelled.py",
        "arrows of graph.csv are read backwards",
    ),
    # ── nn ────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "nn/spd.py",
        "return (s - (lse[..., :, None] + lse[..., None, :]) / 2).exp()",
        "return (s - lse[..., :, None]).exp()",
        "tests/nn/test_spd.py",
        "the softmax is that of rows: not symmetric",
    ),
    Mutant(
        "nn/spd.py",
        "ratio = ratio * (free[..., :, None] | free[..., None, :])",
        "ratio = ratio * (free[..., :, None] & free[..., None, :])",
        "tests/nn/test_spd.py",
        "the slope of the logarithm vanishes beside clamped eigenvalues",
    ),
    Mutant(
        "nn/layers.py",
        'if self.axis == "attributes" else part_bmdhe.flatten(2, 3)',
        'if self.axis == "samples" else part_bmdhe.flatten(2, 3)',
        LAYERS,
        "attention runs along the other axis",
    ),
    Mutant(
        "nn/layers.py",
        "torch.cat([a1 @ b1, a2.mT @ b2, a3 @ b3.mT], 1)",
        "torch.cat([a1 @ b1, a2.mT @ b2, a3.mT @ b3], 1)",
        LAYERS,
        "pair blocks do not hear of common children",
    ),
    Mutant(
        "nn/features.py",
        "off_diagonal = r - torch.diag_embed(r.diagonal(dim1=-2, dim2=-1))",
        "off_diagonal = r * 1.0",
        "tests/nn/test_features.py",
        "a variable counts as the third one of its own pairs",
    ),
    Mutant(
        "nn/cpu.py",
        "(a1, a2.mT, a3), (b1, b2, b3.mT)",
        "(a1, a2.mT, a3.mT), (b1, b2, b3)",
        "tests/nn/test_cpu.py",
        "without gradients pair blocks do not hear of common children",
    ),
    Mutant(
        "nn/features.py",
        "k_bdd.square().cumsum(-2)",
        "k_bdd.square().cumsum(-1)",
        "tests/nn/test_features.py",
        "correlations given earlier variables are scaled along the wrong axis",
    ),
    Mutant(
        "nn/edge_net.py",
        "turned_bddo = z_bddo.transpose(-3, -2)",
        "turned_bddo = z_bddo * 1.0",
        EDGES,
        "logits of (i, j) and of (j, i) differ",
    ),
    Mutant(
        "nn/edge_net.py",
        "table_features(rows_b11, n_variables), rows_b11[..., None].sqrt()",
        "table_features(rows_b11, n_variables), rows_b11[..., None]",
        EDGES,
        "the network is given M for √M where rows are counted",
    ),
    Mutant(
        "nn/structures.py",
        "alone = (beside_i ^ beside_j).scatter(-1, parents_s2, False)",
        "alone = (beside_i | beside_j).scatter(-1, parents_s2, False)",
        CHILDREN,
        "candidates are listed as neighbours as well",
    ),
    Mutant(
        "nn/immorality_net.py",
        "inside_b1p = parent_bd[:, None] @ (2 * to_bdp - own_bdp)",
        "inside_b1p = parent_bd[:, None] @ (2 * to_bdp)",
        CHILDREN,
        "the parents' own pair is mixed up with their diagonals",
    ),
    Mutant(
        "nn/weights.py",
        "return logits / self.temperature + logits.new_tensor(self.offsets)",
        "return logits * self.temperature + logits.new_tensor(self.offsets)",
        "tests/nn/test_weights.py",
        "the temperature sharpens where it should soften",
    ),
    # ── directions ────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "directions/immoralities.py",
        "pairs_dd &= (moral_dd < OBVIOUS_FROM) | (n_candidates_dd > 1)",
        "pairs_dd &= (moral_dd < OBVIOUS_FROM) | (n_candidates_dd > 0)",
        "tests/directions/test_immoralities.py",
        "the second network is asked what is obvious",
    ),
    Mutant(
        "directions/immoralities.py",
        "logits = [_logit(p) for p in (p_n, p_dd3[a, b, MORAL], links_n)]",
        "logits = [_logit(p) for p in (p_n, p_dd3[a, b, SKELETON], links_n)]",
        "tests/directions/test_immoralities.py",
        "evidence takes the link of the parents for their being moral",
    ),
    Mutant(
        "directions/arrows.py",
        "by_r1 = np.minimum(into[:, None] - collider, absent).max(axis=0)",
        "by_r1 = np.minimum(into[:, None] + 0 * collider, absent).max(axis=0)",
        "tests/directions",
        "rule 1 concludes from an arrow that may belong to a collider",
    ),
    Mutant(
        "directions/arrows.py",
        "alone, either = arrow_dd * (1 - arrow_dd.T), 1 - arrow_dd * arrow_dd.T",
        "alone, either = arrow_dd * (1 - arrow_dd.T), np.ones_like(arrow_dd)",
        "tests/directions",
        "evidence for both directions is not conditioned on one of them being false",
    ),
    Mutant(
        "directions/cpdag.py",
        "right = np.where(edges & edges.T, is_open, np.where(edges, arrow_dd, arrow_dd.T) - caution * is_open)",
        "right = np.where(edges & edges.T, is_open, np.where(edges, arrow_dd.T, arrow_dd) - caution * is_open)",
        "tests/directions/test_cpdag.py",
        "an arrow is judged by the probability of its opposite",
    ),
    # ── inference ─────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "inference/stability.py",
        "links_dd += result.probabilities[..., SKELETON] >= STABLE_FROM",
        "links_dd += result.probabilities[..., SKELETON] < STABLE_FROM",
        "tests/inference",
        "stability counts resamples without the link",
    ),
    Mutant(
        "inference/answers.py",
        "found[place] = ready.varying[found[place]]",
        "found[place] = found[place]",
        "tests/inference",
        "immoralities point at the wrong columns beside constant ones",
    ),
    Mutant(
        "inference/answers.py",
        "knowledge.apply(ready.names, ready.put_constants_back(p_ee3, [1.0, 0.0, 0.0]))",
        "ready.put_constants_back(p_ee3, [1.0, 0.0, 0.0])",
        "tests/inference",
        "prior knowledge is ignored",
    ),
    # ── result ────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "result.py",
        "p_dd = self.probabilities[..., SKELETON] + self.probabilities[..., MORAL]",
        "p_dd = self.probabilities[..., SKELETON] + 0.0",
        "tests/test_result.py",
        "the moral graph leaves out parents of common children",
    ),
    Mutant(
        "result.py",
        "[[known.forbids(a, b) for b in self.names] for a in self.names]",
        "[[known.forbids(b, a) for b in self.names] for a in self.names]",
        "tests/test_result.py tests/inference",
        "known directions are enforced backwards",
    ),
    Mutant(
        "result.py",
        "right = p * np.where(is_arrow, forward, 1 - forward - backward)",
        "right = p * np.where(is_arrow, forward, 1 - forward)",
        "tests/test_result.py",
        "an open edge counts as right where it points backwards",
    ),
    # ── questions ─────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "questions/blanket.py",
        "parent, child = linked * arrow_dd[others, k], linked * arrow_dd[k, others]",
        "child, parent = linked * arrow_dd[others, k], linked * arrow_dd[k, others]",
        "tests/questions/test_blanket.py",
        "parents are told as children",
    ),
    Mutant(
        "questions/comparison.py",
        'return "lost" if here else "gained" if there else ""',
        'return "gained" if here else "lost" if there else ""',
        "tests/questions/test_comparison.py",
        "links that were lost are told as gained",
    ),
    Mutant(
        "questions/sizes.py",
        "size = float(x_m @ y_m / (x_m @ x_m))",
        "size = float(x_m @ y_m / (y_m @ y_m))",
        "tests/questions/test_sizes.py",
        "the size of a link is that of its reverse",
    ),
    # ── output ────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "output/files.py",
        'other = {"forward": "backward", "backward": "forward"}',
        'other = {"forward": "forward", "backward": "backward"}',
        FILES,
        "an open edge that is written a second time keeps the numbers of the other direction",
    ),
    Mutant(
        "output/files.py",
        """{'->' if is_directed else '--'} n{place[link.b]}""",
        """{'--' if is_directed else '->'} n{place[link.b]}""",
        FILES,
        "DOT files have the wrong kind of edge",
    ),
    Mutant(
        "output/templates/layout.js",
        "const isTurned = !isDirected && order[a] > order[b];",
        "const isTurned = order[a] < order[b];",
        "tests/output/test_layout.py",
        "causes are drawn below their effects",
    ),
    # ── simulation ────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "simulation/labels.py",
        "bidirected_bdd = _join(onward_bdd.mT, onward_bdd)",
        "bidirected_bdd = _join(onward_bdd, onward_bdd.mT)",
        "tests/simulation/test_labels.py",
        "common effects of hidden variables are taken for common causes",
    ),
    Mutant(
        "simulation/labels.py",
        "is_all_b1 = (unmarried_bi | (inherited_bi & ~parents_bi)).any(1, keepdim=True)",
        "is_all_b1 = unmarried_bi.any(1, keepdim=True)",
        "tests/simulation/test_labels.py",
        "compelled arrows are not handed on",
    ),
    Mutant(
        "simulation/noise.py",
        "(1 - phi_n1.square()).sqrt() * e_nm[:, 1:]",
        "(1 - phi_n1).sqrt() * e_nm[:, 1:]",
        "tests/simulation/test_noise.py",
        "the variance of autocorrelated noise falls from row to row",
    ),
    Mutant(
        "simulation/mechanisms.py",
        "return x_npm.square() * x_npm",
        "return x_npm.square()",
        "tests/simulation/test_mechanisms.py",
        "cubes are squares",
    ),
    Mutant(
        "simulation/graphs.py",
        "above_bj = (level_bd[:, :j] + 1) * arrows_jbi[j, :, :j]",
        "above_bj = level_bd[:, :j].clamp(min=1) * arrows_jbi[j, :, :j]",
        "tests/simulation/test_graphs.py",
        "children are simulated before their parents",
    ),
    Mutant(
        "simulation/values.py",
        "return torch.lerp(unit(signal_nm), noise_nm, share_n1)",
        "return torch.lerp(noise_nm, unit(signal_nm), share_n1)",
        VALUES,
        "shares of noise and signal are exchanged",
    ),
    Mutant(
        "simulation/values.py",
        "x_bdm = _measure(rng, plan, values.x_nm)[plan.row_bd]",
        "x_bdm = _measure(rng, plan, values.x_nm)[plan.row_bd.flip(1)]",
        VALUES,
        "columns of tables are not those of their graphs",
    ),
    Mutant(
        "simulation/worlds/parts.py",
        "return x_km if cells is None else cells.apply(where, x_km)",
        "return x_km",
        "tests/simulation/test_worlds.py",
        "cells of named worlds that are said to be set were not",
    ),
    Mutant(
        "simulation/worlds/parts.py",
        "place_n[n_all * table + child], w_bee[table, parent, child]",
        "place_n[n_all * table + child], w_bee[table, child, parent]",
        "tests/simulation/test_worlds.py",
        "arrows of a world have the weights of their reverse",
    ),
    Mutant(
        "simulation/cells.py",
        "new_km = self.keep_be[where][..., None] * x_km + self.value_bem[where]",
        "new_km = x_km + self.value_bem[where]",
        "tests/simulation/test_worlds.py",
        "an experiment that fixes a value only shifts it",
    ),
    # ── training ──────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "training/objectives.py",
        "binary = torch.where(classes_bdd == 0, none, torch.logaddexp(skeleton, moral))",
        "binary = torch.where(classes_bdd <= 1, none, torch.logaddexp(skeleton, moral))",
        "tests/training/test_objectives.py",
        "the loss rewards the network for missing links",
    ),
    Mutant(
        "training/data.py",
        "return (from_a & from_b & apart_s[:, None] & (roles_sw == CANDIDATE))",
        "return (from_a & from_b & (roles_sw == CANDIDATE))",
        "tests/training/test_data.py",
        "children of linked parents are learnt as immoralities",
    ),
    Mutant(
        "training/step.py",
        "left = min(1.0, max(0.0, 1 - progress) / config.decay_share)",
        "left = min(1.0, max(0.0, progress) / config.decay_share)",
        "tests/training/test_step.py tests/training/test_loop.py",
        "the learning rate rises where it should fall",
    ),
    Mutant(
        "training/muon.py",
        "update_nrc = rate * (0.2 * max(rows, columns) ** 0.5) * orthogonalise(ahead_nrc)",
        "update_nrc = rate * (0.2 * min(rows, columns) ** 0.5) * orthogonalise(ahead_nrc)",
        "tests/training/test_muon.py",
        "steps of Muon are too short for matrices that are not square",
    ),
    Mutant(
        "nn/tiles.py",
        "steps = (n_samples * n_variables, 1, n_variables)",
        "steps = (n_samples * n_variables, 1, n_samples)",
        "tests/nn/test_tiles.py",
        "tiles along samples take the wrong cells",
    ),
    Mutant(
        "nn/tiles.py",
        "per_tile, n_positions = tile // n_variables * n_variables, n_tables * n_samples * n_variables",
        "per_tile, n_positions = tile, n_tables * n_samples * n_variables",
        "tests/nn/test_tiles.py",
        "rows of a table are cut between two tiles",
    ),
    Mutant(
        "training/loop.py",
        "fewer = all(getattr(old, name) >= getattr(new, name) for name in _SHRINKING)",
        "fewer = True",
        "tests/training/test_loop.py",
        "a run begins with layers over samples that its weights do not have",
    ),
    Mutant(
        "training/calibration.py",
        "scaled = logits_n3 / log_temperature.exp() + offsets - offsets.mean()",
        "scaled = logits_n3 * log_temperature.exp() + offsets - offsets.mean()",
        "tests/training/test_calibration.py",
        "the inverse of the temperature is fitted",
    ),
    # ── benchmarks ────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "benchmarks/scores.py",
        "return np.maximum(scores, scores.T)",
        "return (scores + scores.T) / 2",
        "tests/benchmarks/test_scores.py",
        "arrows rank half-way to absent edges",
    ),
    Mutant(
        "benchmarks/report/summary.py",
        'rank(axis=1, ascending=not is_better_high, method="average")',
        'rank(axis=1, ascending=is_better_high, method="average")',
        "tests/benchmarks/report/test_summary.py",
        "the worst method has rank 1",
    ),
    Mutant(
        "benchmarks/cases.py",
        "min(n_rows, MAX_ROWS), listing.acyclic",
        "max(n_rows, MAX_ROWS), listing.acyclic",
        "tests/benchmarks/test_cases.py",
        "long third-party tables are not thinned out",
    ),
    Mutant(
        "benchmarks/baselines/partial_correlation.py",
        "np.sqrt(max(n_samples - n_variables - 1, 1))",
        "np.sqrt(n_samples)",
        "tests/benchmarks/baselines/test_baselines.py -k 'partial or fisher or pairs'",
        "the test of a partial correlation forgets what it conditions on",
    ),
    # ── cli, web ──────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "cli/_infer.py",
        "raise typer.Exit(2 if all(failed) else 1)",
        "raise typer.Exit(0)",
        "tests/cli/test_cli.py",
        "the exit code says that all is well where tables of a folder failed",
    ),
    Mutant(
        "result.py",
        "return len(links) - true, max(self.expected_links - true, 0.0)",
        "return true, max(self.expected_links - true, 0.0)",
        "tests/cli/test_cli.py",
        "the number of links that are expected to be false is that of the true ones",
    ),
    Mutant(
        "web/server.py",
        'if origin is not None and origin not in (f"http://{host}", f"https://{host}"):',
        'if origin is not None and origin in (f"http://{host}", f"https://{host}"):',
        "tests/web/test_server.py",
        "the page takes tables from foreign sites only",
    ),
    Mutant(
        "web/desk.py",
        "except Exception as error:  # or all who come later would wait for ever",
        "except KeyError as error:",
        "tests/web/test_desk.py -k foresaw",
        "an error that nobody foresaw ends the queue for all",
    ),
    Mutant(
        "inference/executors.py",
        "weakref.finalize(self, client.close)",
        "pass",
        "tests/inference/test_executors.py -k connection",
        "every call leaves a connection to the scheduler behind",
    ),
    Mutant(
        "web/words.py",
        """last = re.split(r"[\\\\/]", name)[-1]""",
        """last = re.split(r"[\\\\/]", name)[0]""",
        "tests/web/test_words.py src/graphbam/web/words.py",
        "an uploaded table is called after the uploader's folder",
    ),
    # ── defects that were repaired, each as it was ────────────────────────────────────────────────────────────
    Mutant(
        "machine/disk.py",
        "above = make_folder(place if place.exists() else place.parent)",
        'above = folder.with_name("x")',
        "tests/cli/test_cli.py -k present_folder",
        "infer -o . fails after the work is done",
    ),
    Mutant(
        "inference/networks.py",
        "if colliders is None or fits_partner(colliders.header, edges.header):",
        "if True:",
        "tests/inference/test_networks.py",
        "evidence is used beside edge weights that it was not fitted to",
    ),
    Mutant(
        "inference/journey.py",
        "        if len(ready) == 1:",
        "        raise\n        if len(ready) == 1:",
        "tests/inference/test_journey.py",
        "one table that does not fit into memory ends infer_many",
    ),
    Mutant(
        "inference/journey.py",
        "in _batch_by_shape(_prepare_each(sources, config, answers)):",
        "in _batch_by_shape(list(_prepare_each(sources, config, answers))):",
        "tests/inference/test_journey.py",
        "all tables are prepared before the first pass",
    ),
    Mutant(
        "nn/threads.py",
        "    _set_own_threads(most)",
        "    torch.set_num_threads(most)",
        "tests/nn/test_threads.py",
        "threads are counted for the whole process",
    ),
    Mutant(
        "inference/networks.py",
        'getattr(loaded, "path", None) or loaded.name',
        "loaded.name",
        "tests/inference/test_networks.py",
        "weights given by path are recorded by stem",
    ),
    Mutant(
        "inference/journey.py",
        "        **describe_device(edges),\n",
        "",
        "tests/inference/test_networks.py",
        "device and precision are not recorded",
    ),
    Mutant(
        "web/preview.py",
        'table.name = f"{name}{PART}{chosen}" if chosen else name',
        'table.name = f"/tmp/upload/{name}"',
        "tests/web/test_server.py",
        "reports of the page name a temporary file",
    ),
    Mutant(
        "web/server.py",
        "if table.size > LARGEST_UPLOAD:",
        'if int(request.headers.get("content-length", 0)) > LARGEST_UPLOAD:',
        "tests/web/test_server.py",
        "the page believes what the sender says of the size",
    ),
    Mutant(
        "web/preview.py",
        "part, limit=LARGEST_UNPACKED)",
        "part)",
        "tests/web/test_server.py",
        "a gzipped table is unpacked whatever its size",
    ),
    Mutant(
        "web/words.py",
        '.split()).strip(". ")',
        ".split())",
        "tests/web/test_words.py src/graphbam/web/words.py",
        "a file named .. is taken by that name",
    ),
    Mutant(
        "web/server.py",
        'if _host_of(f"//{host}") not in self.hosts:',
        "if not host:",
        "tests/web/test_server.py",
        "the page answers to any host name",
    ),
    Mutant(
        "web/worker.py",
        'return {"weights": held.weights, "colliders": held.colliders, "device": opening.device}',
        'return {"weights": opening.weights, "colliders": opening.colliders, "device": opening.device}',
        "tests/web/test_desk.py -k loaded_once",
        "the page loads its weights for every table",
    ),
    Mutant(
        "training/calibration.py",
        "yield loaded.logits(tables.x_bmd, rows_of_tables(tables), marks_bmd), tables",
        "yield loaded.network(tables.x_bmd, rows_of_tables(tables)), tables",
        "tests/training/test_calibration.py",
        "tables of the calibration stay on the CPU when the network does not",
    ),
    Mutant(
        "runs/bench_network.py",
        "tree_map(lambda part: part.detach().clone().requires_grad_(part.ndim > 1), inputs)",
        "tuple(part.clone().requires_grad_(part.ndim > 1) for part in inputs)",
        "tests/runs/test_bench_network.py",
        "layers that are given lists cannot be timed",
    ),
    Mutant(
        "nn/cost.py",
        "any(words in str(error) for words in EXHAUSTED)",
        '"memory" in str(error)',
        "tests/inference/test_networks.py",
        "any error with the word memory is taken for exhaustion",
    ),
    Mutant(
        "training/data.py",
        "weights.probabilities(tables.x_bmd, rows, marks_bmd)",
        "weights.probabilities(tables.x_bmd, None, marks_bmd)",
        "tests/training/test_data.py",
        "the second network learns from answers that ignore what rows are worth",
    ),
    Mutant(
        "training/config.py",
        "moral_threshold: float = MORAL_FROM",
        "moral_threshold: float = 0.3",
        "tests/training/test_data.py",
        "the second network learns from other pairs than it is asked about",
    ),
    Mutant(
        "result.py",
        'if values.get("version") != VERSION:',
        "if False:",
        "tests/test_result.py",
        "results of other versions are read as if they were of this one",
    ),
    Mutant(
        "result.py",
        "    if unknown or missing:",
        "    if missing:",
        "tests/test_result.py",
        "unknown parts of a stored result are ignored",
    ),
    Mutant(
        "machine/disk.py",
        "                os.replace(away / name, folder / name)\n        raise",
        "                pass\n        raise",
        "tests/machine/test_disk.py",
        "a folder of outputs that cannot be finished loses what it had",
    ),
    Mutant(
        "runs/validate.py",
        "gb.infer_many([problem.x_md for problem in case.problems], **settings)",
        "[gb.Result(tuple(map(str, range(one.x_md.shape[1]))), edges.probabilities(torch.tensor(one.x_md)[None])[0]"
        ".numpy()) for one in case.problems]",
        "tests/runs/test_validate.py",
        "model cards judge the bare network instead of what a user gets",
    ),
    Mutant(
        "machine/disk.py",
        "if name not in own and holds_something",
        "if name in own and holds_something",
        "tests/machine/test_disk.py",
        "files of others are replaced, one's own refused",
    ),
    Mutant(
        "machine/disk.py",
        'and ".." not in Path(name).parts',
        "",
        "tests/machine/test_disk.py",
        "a note leads out of its folder",
    ),
)


def locate(mutant: Mutant, root: Path) -> Path:
    """The file that a mutant changes, in some copy of the tree."""
    return root / mutant.file if mutant.file.startswith("runs/") else root / SOURCE / mutant.file


def find_snippet(mutant: Mutant, root: Path = ROOT) -> int:
    """How often the snippet of a mutant occurs in its file; 0 without such a file."""
    path = locate(mutant, root)
    return path.read_text(encoding="utf-8").count(mutant.old) if path.is_file() else 0


def try_mutant(mutant: Mutant, tree: Path) -> Verdict:
    """Apply a mutant to a copy of the tree, run its tests, and take it back."""
    if (n_found := find_snippet(mutant, tree)) != 1:
        return Verdict("error", f"the snippet occurs {n_found} times in {mutant.file}")
    path = locate(mutant, tree)
    healthy = path.read_text(encoding="utf-8")
    path.write_text(healthy.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        return run_tests(mutant.tests, tree)
    finally:
        path.write_text(healthy, encoding="utf-8")


def run_tests(tests: str, tree: Path) -> Verdict:
    """Run tests in a copy until one fails. Anything but failed or passed tests is an error, not a death."""
    # Compiled files are recognised by the second in which their source was written: too coarse for mutants.
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *shlex.split(tests)]
    try:
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return Verdict("error", f"the tests did not end within {LIMIT_SECONDS} seconds")
    if done.returncode == 0:
        return Verdict("survived", f"all of {tests} passed")
    failed = re.search(r"^FAILED (\S+)", done.stdout, flags=re.MULTILINE)
    if done.returncode == 1 and failed:
        return Verdict("killed", f"by {failed[1]}")
    return Verdict("error", f"pytest ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-300:]}")


@contextlib.contextmanager
def copies(number: int) -> Iterator[queue.Queue[Path]]:
    """So many copies of the working tree, all that git does not ignore, in a folder that goes away."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    trees: queue.Queue[Path] = queue.Queue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        for k in range(number):
            tree = Path(folder) / str(k)
            for name in names:
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name)
            trees.put(tree)
        yield trees


def main() -> int:
    """Try mutants and report; the exit status is the number of those that were not killed, 1 at most."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="these mutants, by their number")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--list", action="store_true", help="print what they are and stop")
    asked = parser.parse_args()
    chosen = [(k, mutant) for k, mutant in enumerate(MUTANTS) if asked.only is None or k in asked.only]
    if asked.list:
        print("\n".join(f"{k:3d}  {mutant.file}: {mutant.breaks}" for k, mutant in chosen))
        return 0
    kinds = []
    with copies(asked.jobs) as trees, ThreadPoolExecutor(asked.jobs) as pool:

        def work(mutant: Mutant) -> Verdict:
            tree = trees.get()
            try:
                return try_mutant(mutant, tree)
            finally:
                trees.put(tree)

        for (k, mutant), verdict in zip(chosen, pool.map(work, [mutant for _, mutant in chosen]), strict=True):
            print(f"{k:3d}  {verdict.kind:8}  {mutant.file}: {mutant.breaks} ({verdict.detail})", flush=True)
            kinds.append(verdict.kind)
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("killed", "survived", "error"))
    print(f"{len(kinds)} mutants: {counts}")
    return int(kinds.count("killed") < len(kinds))


if __name__ == "__main__":
    sys.exit(main())
