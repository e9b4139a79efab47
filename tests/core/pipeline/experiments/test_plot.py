"""The plot is sound SVG, with every curve in it and every point in its panel."""

import math
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from tagsmith.core.pipeline.experiments.plot import COLOURS, Axis, Curve, svg_of

SVG = "{http://www.w3.org/2000/svg}"


def curve(name: str, passes: int, *, scale: float = 1.0, seconds: float = 1.0, dev: bool = True) -> Curve:
    points: list[dict[str, Any]] = [
        {
            "pass": i,
            "seconds": seconds * i,
            "objective": scale * 1000 / i,
            "dev_score": 90 - 40 / i if dev else None,
        }
        for i in range(1, passes + 1)
    ]
    return Curve(name, points)


def drawn(curves: list[Curve]) -> ET.Element:
    return ET.fromstring(svg_of(curves, "F1 on dev, %"))


def test_every_curve_is_in_every_panel_and_in_the_legend() -> None:
    root = drawn([curve("adf <&>", 5), curve("sgd", 30, scale=3)])
    lines = root.findall(f".//{SVG}polyline")
    assert [line.get("stroke") for line in lines] == [COLOURS[0], COLOURS[1]] * 4
    texts = [text.text for text in root.findall(f".//{SVG}text")]
    assert {"adf <&>", "sgd", "passes", "seconds of training", "F1 on dev, %", "objective"} <= set(texts)
    assert texts.count("objective") == 2


def test_points_lie_inside_their_panels_but_for_first_passes() -> None:
    root = drawn([curve("a", 40), curve("b", 40, seconds=100.0)])
    boxes = [
        {key: float(value) for key, value in each.attrib.items()}
        for each in root.findall(f".//{SVG}clipPath/{SVG}rect")
    ]
    assert len(boxes) == 4
    outside = 0
    for line in root.findall(f".//{SVG}polyline"):
        group = next(g for g in root.iter(f"{SVG}g") if line in list(g))
        found = re.search(r"clip-(\d)-(\d)", group.get("clip-path") or "")
        assert found is not None
        box = boxes[2 * int(found[1]) + int(found[2])]
        for pair in (line.get("points") or "").split():
            x, y = map(float, pair.split(","))
            assert box["x"] - 0.1 <= x <= box["x"] + box["width"] + 0.1
            outside += not box["y"] - 0.1 <= y <= box["y"] + box["height"] + 0.1
    assert outside <= 0.1 * 4 * 40 * 2


def test_more_curves_than_colours_are_dashed() -> None:
    root = drawn([curve(f"run {i}", 3) for i in range(32)])
    looks = {(line.get("stroke"), line.get("stroke-dasharray")) for line in root.findall(f".//{SVG}polyline")}
    assert len(looks) == 32


@pytest.mark.parametrize(
    "curves",
    [
        [],
        [curve("one pass", 1)],
        [curve("none", 0)],
        [curve("no dev", 4, dev=False)],
        [Curve("odd", [{"pass": 1, "seconds": 0.0, "objective": math.inf, "dev_score": math.nan}])],
        [Curve("flat", [{"pass": i, "seconds": 0.0, "objective": 0.0, "dev_score": 0.0} for i in (1, 2)])],
        [
            Curve(
                "below zero",
                [{"pass": i, "seconds": i, "objective": -5.0 * i, "dev_score": 1} for i in (1, 2)],
            )
        ],
    ],
    ids=lambda curves: curves[0].name if curves else "nothing",
)
def test_whatever_the_points_it_is_a_sound_picture(curves: list[Curve]) -> None:
    text = svg_of(curves, "accuracy on dev, %")
    root = ET.fromstring(text)
    assert not re.search(r"\b(nan|inf)\b", text)
    rows = 1 if any(c.name in ("no dev", "none", "odd") for c in curves) or not curves else 2
    assert len(root.findall(f".//{SVG}clipPath")) == 2 * rows


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.0), (93.1, 93.4), (0.0, 1e6), (-3.0, 2.0), (1e-9, 3e-9), (0.0, 7.0), (3.0, 3.0)]
)
def test_an_axis_has_some_round_ticks(low: float, high: float) -> None:
    axis = Axis.of("x", [low, high])
    ticks = axis.ticks()
    assert 3 <= len(ticks) <= 9
    assert all(0 <= axis.place(tick) <= 1 for tick in ticks)


def test_wide_ranges_are_logarithmic() -> None:
    axis = Axis.of("x", [0.02, 400.0], may_log=True)
    assert axis.log
    assert 4 <= len(axis.ticks()) <= 10
    assert axis.place(math.sqrt(axis.low * axis.high)) == pytest.approx(0.5)
    assert not Axis.of("x", [1.0, 10.0], may_log=True).log
    assert not Axis.of("x", [-1.0, 1000.0], may_log=True).log
    assert 3 <= len(Axis.of("x", [1e-12, 1e12], may_log=True).ticks()) <= 12
