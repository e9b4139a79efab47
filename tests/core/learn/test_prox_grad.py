"""Proximal gradient: its steps against a generic convex solver, the lazy learner against a dense literal one."""

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize

from tagsmith.core.base.errors import Invalid
from tagsmith.core.jobs.kinds import parse_job
from tagsmith.core.learn.problem.groups import Templates, precedes
from tagsmith.core.learn.trainers.order import pass_order
from tagsmith.core.learn.trainers.proximal.prox_grad import ProxGrad, ProxGradSpec
from tagsmith.core.learn.weights.pairs import seen_marks
from tagsmith.core.learn.weights.scoring import Weights
from tests import naive, naive_prox
from tests.core.learn.runs import all_rows, resumed, run_to, trained
from tests.core.problems import random_problem

LABELS = 3
#: p0, w0, p0 p1, w0 p1, then the transitions, and p0 with pairs of labels: ranks of p and w are 1 and 2.
HERE, NEXT = ("token", 0), ("token", 1)
PATTERNS = (
    ("U", {HERE: (1,)}),
    ("U", {HERE: (2,)}),
    ("U", {HERE: (1,), NEXT: (1,)}),
    ("U", {HERE: (2,), NEXT: (1,)}),
    ("B", {}),
    ("B", {HERE: (1,)}),
)
#: Their groups, in sets of disjoint ones, those inside others first.
COARSE_TO_FINE = [[{3}, {5}], [{1, 3}, {4, 5}], [{2, 3}], [{0, 1, 2, 3}]]
#: Without w0, the groups of what is left are nested.
NESTED = (PATTERNS[0], PATTERNS[2], PATTERNS[3])


class Exact(ProxGrad):
    dtype = np.float64


def templated(seed=15, patterns=PATTERNS, **more):
    """A random problem, its attributes spread over the templates of single labels."""
    problem, twins = random_problem(seed, sentences=9, labels=LABELS, attributes=8, **more)
    single = sum(kind == "U" for kind, _ in patterns)
    transitions = next((t for t, pattern in enumerate(patterns) if pattern == ("B", {})), None)
    templates = Templates(
        names=tuple(f"T{t}" for t in range(len(patterns))),
        edges=tuple(kind == "B" for kind, _ in patterns),
        patterns=patterns,
        of_attributes=np.arange(problem.attributes, dtype=np.int16) % single,
        of_edge_attributes=np.full(problem.edge_attributes, 5, np.int16),
        transitions=transitions,
    )
    return replace(problem, templates=templates), twins


def started(problem, spread=1e-3, seed=5):
    """Random weights, as they are and as the learner takes them."""
    start = np.random.default_rng(seed).normal(0, spread, (problem.rows, LABELS))
    start[problem.attributes : problem.blocks] *= problem.edges
    if problem.existing.seen_pairs:
        start *= seen_marks(problem)
    values = np.zeros((len(start), problem.width))
    values[:, :LABELS] = start
    return start, Weights(problem, values.reshape(-1))


def masks(problem, template_sets):
    """Sets of groups of templates as sets of masks over the weights; groups of nothing left out."""
    exists = seen_marks(problem) if problem.existing.seen_pairs else np.ones((problem.rows, LABELS), bool)
    exists = exists.copy()
    if not problem.edges:
        exists[problem.attributes : problem.blocks] = False
    of_rows = problem.templates.of_rows(LABELS)
    sets = [[np.isin(of_rows, list(group))[:, None] & exists for group in groups] for groups in template_sets]
    return [[group for group in groups if group.any()] for groups in sets]


def rows_of_units(problem):
    """A mask for each attribute and edge attribute."""
    firsts = [(a, a + 1) for a in range(problem.attributes)]
    firsts += [(r, r + LABELS) for r in range(problem.blocks, problem.rows, LABELS)]
    groups = []
    for first, last in firsts:
        group = np.zeros((problem.rows, LABELS), bool)
        group[first:last] = True
        groups.append(group)
    return groups


def singles(problem):
    groups = []
    for cell in np.ndindex(problem.rows, LABELS):
        group = np.zeros((problem.rows, LABELS), bool)
        group[cell] = True
        groups.append(group)
    return groups


def literal(problem, spec):
    """The proximal step of a spec, on dense weights."""
    count = len(problem.templates.names)

    def steps(w, sets, d, share):
        if spec.budget is not None:
            return naive_prox.by_budget(w, sets, d, spec.budget, spec.rank, spec.shrink)
        return naive_prox.by_strength(w, sets, d, share * spec.strength)

    def proximal(w, share):
        if spec.groups == "label":
            return steps(w, [rows_of_units(problem)], lambda _: 1.0, share)
        if spec.groups == "elastic-net":
            return steps(w, [singles(problem)], lambda _: 1.0, share) / (1 + share * spec.l2)
        if spec.groups == "lasso":
            return naive_prox.softened(w, share * spec.strength)
        if spec.groups == "coarse-to-fine":
            return steps(w, masks(problem, COARSE_TO_FINE), naive_prox.weight_of, share)
        if spec.groups == "sparse-group":
            w = naive_prox.softened(w, share * spec.l1)
        return steps(w, masks(problem, [[{t} for t in range(count)]]), naive_prox.weight_of, share)

    return proximal


GROUPS = {
    "template": {},
    "label": {},
    "sparse-group": {"l1": 0.4},
    "elastic-net": {"l2": 0.8},
    "coarse-to-fine": {},
    "lasso": {},
}
STRENGTHS = {
    "template": 0.3,
    "label": 1.0,
    "sparse-group": 0.3,
    "elastic-net": 0.4,
    "coarse-to-fine": 0.1,
    "lasso": 0.4,
}
BUDGETS = {"template": 3, "label": 5, "sparse-group": 3, "elastic-net": 14, "coarse-to-fine": 4}


#: The readings of a budget, and those that promise to leave exactly so many groups.
EXACT = [{"rank": "norm", "shrink": "plain"}, {"rank": "scaled", "shrink": "scaled"}]
READINGS = [*EXACT, {"rank": "norm", "shrink": "scaled"}]


def named(reading):
    return "-".join(reading.values())


def spec_of(groups, by, loss="crf", **more):
    how = {"strength": STRENGTHS[groups]} if by == "strength" else {"budget": BUDGETS[groups]}
    return ProxGradSpec(loss=loss, groups=groups, eta0=0.7, every=4, **how, **GROUPS[groups], **more)


def compared(spec, **variant):
    """The learner's weights and its twin's, on the first problem where nothing ties by rounding."""
    for seed in range(15, 60):
        problem, twins = templated(seed, **variant)
        start, init = started(problem)
        with suppress(naive.Tie):
            expected = naive_prox.prox_grad(
                twins,
                (problem.attributes, LABELS, problem.edge_attributes),
                [pass_order(9, 3, number) for number in (1, 2, 3)],
                spec.loss,
                literal(problem, spec),
                every=spec.every,
                eta0=spec.eta0,
                start=start,
                edges=problem.edges,
                exists=seen_marks(problem) if problem.existing.seen_pairs else None,
            )
            return all_rows(trained(problem, 3, Exact(spec), init=init)), expected
    raise AssertionError("something ties in every problem")


@pytest.mark.parametrize(
    ("groups", "by"), [(g, "strength") for g in STRENGTHS] + [(g, "budget") for g in BUDGETS]
)
@pytest.mark.parametrize("loss", ["crf", "svm", "perceptron"])
def test_weights_equal_the_literal_learner(loss, groups, by):
    found, expected = compared(spec_of(groups, by, loss))
    assert np.abs(expected).max() > 0.05
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found == 0, expected == 0)


@pytest.mark.parametrize("reading", READINGS, ids=named)
@pytest.mark.parametrize("groups", ["template", "sparse-group", "coarse-to-fine"])
def test_weights_equal_the_literal_learner_in_every_reading_of_a_budget(groups, reading):
    for loss in ("crf", "perceptron"):
        found, expected = compared(spec_of(groups, "budget", loss, **reading))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(found == 0, expected == 0)


@pytest.mark.parametrize(
    "variant",
    [{"valued": True}, {"edges": False}, {"seen_pairs": True}, {"edge_attributes": 4}],
    ids=lambda variant: next(iter(variant)),
)
@pytest.mark.parametrize("groups", GROUPS)
def test_weights_equal_the_literal_learner_whatever_the_features(groups, variant):
    for loss, by in (("crf", "budget" if groups in BUDGETS else "strength"), ("svm", "strength")):
        found, expected = compared(spec_of(groups, by, loss), **variant)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
        assert np.count_nonzero(expected)


def solved(v, groups, amounts):
    """argmin over x of 1/2 |x - v|^2 + sum of amount |x_g|, by the dual: x = v - sum of u_g with |u_g| <= amount."""
    places = [np.flatnonzero(group.reshape(-1)) for group in groups]
    ends = np.cumsum([0, *map(len, places)])
    pieces = [slice(a, b) for a, b in pairwise(ends)]
    spread = np.zeros((v.size, ends[-1]))
    for place, piece in zip(places, pieces, strict=True):
        spread[place, np.arange(piece.start, piece.stop)] = 1.0
    flat = v.reshape(-1)

    def loss(u):
        left = flat - spread @ u
        return 0.5 * left @ left, -spread.T @ left

    def room(u):
        return np.array([a * a - u[p] @ u[p] for p, a in zip(pieces, amounts, strict=True)])

    def slope(u):
        out = np.zeros((len(pieces), len(u)))
        for row, piece in zip(out, pieces, strict=True):
            row[piece] = -2 * u[piece]
        return out

    found = minimize(
        loss,
        np.zeros(ends[-1]),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": room, "jac": slope},
        options={"maxiter": 500, "ftol": 1e-14},
    )
    return (flat - spread @ found.x).reshape(v.shape)


def stepped(problem, spec, init, share):
    """The weights after one proximal step."""
    trainer = Exact(spec)
    state = trainer.start(problem, init)
    trainer.shrink(problem, state, trainer.task(problem), share)
    return all_rows(trainer.weights(problem, state)).copy()


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("groups", ["template", "label", "sparse-group", "elastic-net"])
def test_a_proximal_step_is_what_a_convex_solver_finds(groups, seed):
    problem, _ = templated(seed)
    start, init = started(problem, 1.0, seed)
    spec = spec_of(groups, "strength").model_copy(update={"strength": 1.0})
    each = masks(problem, [[{t} for t in range(5)]])[0]
    share = 0.3
    if groups == "elastic-net":
        # Positive and negative parts, which are smooth.
        n = start.size

        def loss(parts):
            x = parts[:n] - parts[n:]
            off = x - start.reshape(-1)
            value = 0.5 * off @ off + share * parts.sum() + 0.5 * share * spec.l2 * x @ x
            by_x = off + share * spec.l2 * x
            return value, np.concatenate([by_x + share, share - by_x])

        options = {"ftol": 1e-15, "gtol": 1e-10}
        parts = minimize(
            loss, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=[(0, None)] * 2 * n, options=options
        ).x
        expected = (parts[:n] - parts[n:]).reshape(start.shape)
    elif groups == "label":
        expected = solved(start, rows_of_units(problem), [share] * problem.attributes)
    else:
        amounts = [share * naive_prox.weight_of(group) for group in each]
        if groups == "sparse-group":
            each, amounts = each + singles(problem), amounts + [share * spec.l1] * start.size
        expected = solved(start, each, amounts)
    found = stepped(problem, spec, init, share)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert 0.3 < np.linalg.norm(found) / np.linalg.norm(start) < 0.95


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_steps_over_nested_groups_are_the_proximal_step_of_all_of_them(seed):
    problem, _ = templated(seed, NESTED, edges=False)
    start, init = started(problem, 1.0, seed)
    spec = ProxGradSpec(groups="coarse-to-fine", strength=1.0, eta0=1.0)
    groups = [group for one in masks(problem, [[{0, 1, 2}], [{1, 2}], [{2}]]) for group in one]
    share = 0.25
    expected = solved(start, groups, [share * naive_prox.weight_of(group) for group in groups])
    found = stepped(problem, spec, init, share)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    assert np.linalg.norm(found) > 0.3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_steps_over_groups_that_overlap_are_those_of_disjoint_sets_in_turn(seed):
    """Which is not the step of all of them, but of each set it is: and both agree when steps are small."""
    problem, _ = templated(seed)
    start, init = started(problem, 1.0, seed)
    spec = ProxGradSpec(groups="coarse-to-fine", strength=1.0, eta0=1.0)

    def expected(share):
        w = start
        for groups in masks(problem, COARSE_TO_FINE):
            w = solved(w, groups, [share * naive_prox.weight_of(group) for group in groups])
        return w

    np.testing.assert_allclose(stepped(problem, spec, init, 0.15), expected(0.15), rtol=0, atol=1e-5)
    groups = [group for one in masks(problem, COARSE_TO_FINE) for group in one]

    def error(share):
        exact = solved(start, groups, [share * naive_prox.weight_of(group) for group in groups])
        return float(np.abs(stepped(problem, spec, init, share) - exact).max())

    assert error(0.1) > 1e-4
    # Half the step errs by far less than half: what is left is of second order.
    assert error(0.05) < 0.35 * error(0.1)


def test_a_template_that_is_kept_keeps_the_groups_of_those_it_refines():
    problem, _ = templated()
    for seed in range(40):
        _, init = started(problem, 1.0, seed)
        spec = ProxGradSpec(
            groups="coarse-to-fine", budget=1 + seed % 5, eta0=1.0, **READINGS[seed % len(READINGS)]
        )
        found = stepped(problem, spec, init, 1.0)
        of_rows = problem.templates.of_rows(LABELS)
        kept = {t for t in range(5) if found[of_rows == t].any()}
        assert len(kept) <= spec.budget
        groups = [set(group) for group in problem.templates.finer()[:5]]
        assert all(kept & groups[a] for b in kept for a in range(5) if b in groups[a])


@pytest.mark.parametrize("reading", READINGS, ids=named)
@pytest.mark.parametrize("groups", BUDGETS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_budget_step_is_that_of_the_paper_in_every_reading(groups, reading, seed):
    problem, _ = templated(seed, edge_attributes=4)
    start, init = unequal(problem, seed)
    for budget in range(1, 7):
        spec = ProxGradSpec(groups=groups, budget=budget, **GROUPS[groups], **reading)
        expected = literal(problem, spec)(start, 0.2)
        np.testing.assert_allclose(stepped(problem, spec, init, 0.2), expected, rtol=0, atol=1e-12)
        assert groups in ("template", "coarse-to-fine", "sparse-group") or np.count_nonzero(expected)


def unequal(problem, seed):
    """Random weights with templates of very different norms."""
    start, init = started(problem, 1.0, seed)
    of_rows = problem.templates.of_rows(LABELS)
    start *= np.array([1.0, 30.0, 3.0, 0.1, 0.3, 10.0])[of_rows][:, None]
    init.values.reshape(problem.rows, -1)[:, :LABELS] = start
    return start, init


@pytest.mark.parametrize("reading", EXACT, ids=named)
@pytest.mark.parametrize("budget", [1, 2, 3, 4])
def test_a_budget_leaves_exactly_so_many_groups(budget, reading):
    problem, _ = templated()
    of_rows = problem.templates.of_rows(LABELS)
    for _, init in (started(problem, 1.0), unequal(problem, 5)):
        found = stepped(problem, ProxGradSpec(budget=budget, **reading), init, 1.0)
        assert sum(found[of_rows == t].any() for t in range(5)) == budget
        found = stepped(problem, ProxGradSpec(budget=budget, groups="label", **reading), init, 1.0)
        assert np.count_nonzero(found[: problem.attributes].any(axis=1)) == budget
        assert found[problem.attributes :].all()
        net = ProxGradSpec(budget=budget, groups="elastic-net", l2=0.0, **reading)
        assert np.count_nonzero(stepped(problem, net, init, 1.0)) == budget
        whole = stepped(problem, ProxGradSpec(budget=5, **reading), init, 1.0)
        assert np.array_equal(whole, all_rows(init))


def kept_of(reading, norms, budget):
    """Templates that a budget keeps, of two with 5 attributes and one with one, and these norms."""
    problem, _ = random_problem(1, labels=2, attributes=11, edges=False)
    of_attributes = np.array([0] * 5 + [1] * 5 + [2], np.int16)
    templates = Templates(
        ("T0", "T1", "T2"), (False,) * 3, (None,) * 3, of_attributes, np.zeros(0, np.int16), None
    )
    problem = replace(problem, templates=templates)
    values = np.zeros((problem.rows, problem.width))
    values[[0, 5, 10], 0] = norms
    init = Weights(problem, values.reshape(-1))
    found = stepped(problem, ProxGradSpec(budget=budget, **reading), init, 1.0)[[0, 5, 10], 0]
    return {int(t): float(found[t]) for t in np.flatnonzero(found)}


def test_readings_differ_in_what_they_keep_and_by_how_much_they_shrink():
    """d is log2 of 10, 10 and 2 features: 3.32, 3.32 and 1."""
    d, norms = np.log2(10), [10.0, 8.0, 4.0]
    plain, scaled, printed = READINGS
    assert kept_of(plain, norms, 2) == pytest.approx({0: 10 - 6, 1: 8 - 6})
    tau = (4 + 10 / d) / 2
    assert kept_of(scaled, norms, 1) == pytest.approx({2: 4 - tau})
    # The mean of 8 and 4 times 3.32 is more than any norm. Of a budget of two nothing is left.
    assert kept_of(printed, norms, 2) == {}
    assert kept_of(printed, [40.0, 8.0, 4.0], 2) == pytest.approx({0: 40 - 6 * d})


def test_of_groups_that_tie_the_first_stay():
    """Templates that were given twice have the same weights."""
    problem, _ = templated()
    _, init = started(problem, 1.0)
    rows, of_rows = init.values.reshape(problem.rows, -1), problem.templates.of_rows(LABELS)
    for t in (1, 2):
        rows[of_rows == t] = rows[of_rows == 0]
    rows[of_rows >= 3] *= 0.01
    for budget, reading in product((1, 2), EXACT):
        found = stepped(problem, ProxGradSpec(budget=budget, **reading), init, 1.0)
        assert [t for t in range(5) if found[of_rows == t].any()] == list(range(budget))


def test_a_step_of_the_lasso_takes_the_same_from_the_magnitude_of_every_weight():
    problem, _ = templated(edge_attributes=4)
    start, init = unequal(problem, 2)
    found = stepped(problem, ProxGradSpec(groups="lasso", strength=3.0), init, 0.25)
    for cell in np.ndindex(start.shape):
        w = start[cell]
        expected = w - 0.75 if w > 0.75 else w + 0.75 if w < -0.75 else 0.0
        assert found[cell] == pytest.approx(expected, abs=1e-12)
    assert 0 < np.count_nonzero(found) < found.size


def test_the_penalty_of_the_lasso_is_its_strength_times_the_sum_of_magnitudes():
    problem, _ = templated()
    _, init = started(problem)
    for spec, strength in (
        (ProxGradSpec(groups="lasso", strength=3.0), 3.0),
        (ProxGradSpec(groups="lasso"), 1.0),
    ):
        assert ProxGrad(spec).penalty(init, norm1=7.0, norm2=5.0) == strength * 7.0


def test_what_is_dropped_is_freed_and_what_was_instantiated_is_counted():
    problem, _ = templated()
    _, init = started(problem, 1.0)
    trainer = ProxGrad(ProxGradSpec(budget=2, loss="perceptron", every=3))
    state = trainer.start(problem, init)
    assert state["counts"].tolist()[:2] == [problem.rows, problem.rows * LABELS]
    trainer.shrink(problem, state, trainer.task(problem), 1.0)
    weights = trainer.weights(problem, state)
    live = np.flatnonzero(all_rows(weights).any(axis=1))
    assert state["counts"].tolist()[:2] == [len(live), np.count_nonzero(weights.values)]
    assert sorted(state["owners"][: len(live)]) == live.tolist()
    assert np.flatnonzero(state["places"] >= 0).tolist() == live.tolist()
    assert len(live) < problem.rows / 2


def test_room_grows_with_what_gradients_touch_and_shrinks_with_what_is_dropped():
    problem, _ = random_problem(3, sentences=400, attributes=9000, labels=LABELS)
    templates = Templates(
        ("A", "Z", "B"),
        (False, False, True),
        (None,) * 3,
        np.arange(9000, dtype=np.int16) % 2,
        np.zeros(0, np.int16),
        2,
    )
    problem = replace(problem, templates=templates)
    loose = run_to(
        problem, (t := ProxGrad(ProxGradSpec(loss="perceptron", strength=0.0))).start(problem), 2, t
    )
    tight = run_to(problem, (t := ProxGrad(ProxGradSpec(loss="perceptron", budget=1))).start(problem), 2, t)
    used = np.unique(problem.data.rows)
    assert 1024 < loose["counts"][0] < len(used) + LABELS
    assert loose["counts"][0] <= len(loose["owners"]) < problem.rows
    assert len(tight["owners"]) < len(loose["owners"])
    assert tight["instantiated"].max() <= loose["instantiated"].max()
    assert loose["instantiated"][-1] >= np.count_nonzero(t.weights(problem, loose).values)


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("loss", ["crf", "svm", "perceptron"])
def test_a_run_resumed_from_a_checkpoint_gives_the_same_weights(loss, groups):
    problem, _ = templated(edge_attributes=3)
    how = {"budget": 4} if groups in BUDGETS else {"strength": 0.5}
    trainer = ProxGrad(ProxGradSpec(loss=loss, groups=groups, every=5, **how))
    straight, state = trained(problem, 4, trainer), resumed(problem, 2, 4, trainer)
    assert trainer.weights(problem, state).values.tobytes() == straight.values.tobytes()
    again = run_to(problem, trainer.start(problem), 4, trainer)
    assert trainer.findings(straight, again) == trainer.findings(straight, state)


def test_the_scale_of_a_template_never_falls_so_low_that_weights_are_lost():
    problem, twins = templated()
    start, init = started(problem)
    spec = ProxGradSpec(strength=0.9, eta0=1.0, every=1)
    trainer = Exact(spec)
    state = run_to(problem, trainer.start(problem, init), 6, trainer)
    assert state["scales"].min() > 1e-4
    expected = naive_prox.prox_grad(
        twins,
        (problem.attributes, LABELS),
        [pass_order(9, 3, number) for number in range(1, 7)],
        "crf",
        literal(problem, spec),
        every=1,
        eta0=1.0,
        start=start,
    )
    np.testing.assert_allclose(all_rows(trainer.weights(problem, state)), expected, rtol=0, atol=1e-9)


def test_the_order_of_templates_is_by_place_and_fineness():
    problem, _ = templated()
    assert problem.templates.finer() == [[0, 1, 2, 3], [1, 3], [2, 3], [3], [4, 5], [5]]
    both = ("U", {HERE: (2, 1)})
    assert precedes(PATTERNS[1], both)
    assert not precedes(both, PATTERNS[1])
    assert not precedes(None, both)
    assert not precedes(both, None)


@pytest.mark.parametrize(
    ("trainer", "pointer", "reason"),
    [
        ({"strength": 1.0, "budget": 3}, "/trainer/budget", "not both"),
        ({"budget": 0}, "/trainer/budget", "greater than or equal to 1"),
        ({"strength": -1.0}, "/trainer/strength", "greater than or equal to 0"),
        ({"l1": 0.5}, "/trainer/l1", "sparse-group"),
        ({"groups": "sparse-group", "l2": 0.5}, "/trainer/l2", "elastic-net"),
        ({"loss": "logistic"}, "/trainer/loss", "Known: crf, svm, perceptron"),
        ({"groups": "row"}, "/trainer/groups", "Known: template"),
        ({"groups": "lasso", "budget": 3}, "/trainer/budget", "Set `strength` instead"),
        ({"budget": 3, "rank": "scaled"}, "/trainer/rank", "more groups than the budget"),
        ({"budget": 3, "rank": "size"}, "/trainer/rank", "Known: norm, scaled"),
        ({"budget": 3, "shrink": "hard"}, "/trainer/shrink", "Known: plain, scaled"),
        ({"strength": 1.0, "shrink": "scaled"}, "/trainer/shrink", "applies only to a `budget`"),
        ({"groups": "lasso", "rank": "scaled"}, "/trainer/rank", "applies only to a `budget`"),
        ({"every": 0}, "/trainer/every", "greater than or equal to 1"),
        ({"eta0": "fast"}, "/trainer/eta0", "auto"),
        ({"passes": 1001}, "/trainer/passes", "less than or equal to 1000"),
    ],
)
def test_specs_that_cannot_be_are_pointed_at(trainer, pointer, reason):
    body = {"kind": "train", "model": "m", "corpus": "crp_a", "trainer": {"kind": "prox-grad", **trainer}}
    with pytest.raises(Invalid) as raised:
        parse_job(body)
    assert pointer in [fault.pointer for fault in raised.value.faults]
    assert any(reason in fault.reason for fault in raised.value.faults)
