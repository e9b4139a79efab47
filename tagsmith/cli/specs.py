"""Job specs from options: a spec file first, then the options that change it."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tagsmith.cli import complete
from tagsmith.cli.errors import CommandError, unknown
from tagsmith.cli.options import FeatureOptions

DEFAULT_TRAINER = "sgd-l1"


def base(options: FeatureOptions) -> dict[str, Any]:
    """Return the spec file, with features, seed and threads of the options."""
    spec = read(options.spec) if options.spec else {}
    if options.preset is not None and options.template is not None:
        raise CommandError("Give --preset or --template, not both.")
    features = object_in(spec, "features")
    if options.preset is not None:
        _check_name("preset", options.preset, complete.presets())
        spec["features"] = _without(features, "templates", "syntax") | {"preset": options.preset}
    if options.template is not None:
        from tagsmith.client.files import read_templates  # noqa: PLC0415

        spec["features"] = _without(features, "preset") | read_templates(options.template)
    for name in ("seed", "threads"):
        if (value := getattr(options, name)) is not None:
            spec[name] = value
    return spec


def with_trainer(spec: dict[str, Any], kind: str | None, passes: int | None) -> dict[str, Any]:
    """Set the trainer of a spec. A kind replaces the whole trainer of the spec file."""
    named = spec.get("trainer")
    chosen = kind or (named if isinstance(named, str) else None)
    trainer = {"kind": checked_trainer(chosen)} if chosen else object_in(spec, "trainer")
    passed = {} if passes is None else {"passes": passes}
    return {**spec, "trainer": {"kind": DEFAULT_TRAINER, **trainer, **passed}}


def with_trainers(spec: dict[str, Any], kinds: Sequence[str], passes: int | None) -> dict[str, Any]:
    """Set the trainers of a comparison; without kinds those of the spec file stay."""
    trainers = [{"kind": checked_trainer(kind)} for kind in kinds] or spec["trainers"]
    if not isinstance(trainers, list) or not all(isinstance(each, dict) for each in trainers):
        raise CommandError("trainers of the spec must be a list of objects, for example [{kind: sgd-l1}].")
    passed = {} if passes is None else {"passes": passes}
    return {**spec, "trainers": [{**each, **passed} for each in trainers]}


def checked_trainer(kind: str) -> str:
    """Return the kind of a trainer, or say which one was meant."""
    known = complete.trainers()
    _check_name("trainer", kind, known, f" `tagsmith trainers` lists all {len(known)}.")
    return kind


def _check_name(what: str, name: str, known: Sequence[str], hint: str = "") -> None:
    """Refuse an unknown name."""
    if name not in known:
        raise unknown(what, name, known, hint)


def object_in(spec: Mapping[str, Any], field: str) -> dict[str, Any]:
    """Return an object of a spec, empty if there is none. Raise CommandError for anything else."""
    found = spec.get(field)
    if found is not None and not isinstance(found, dict):
        raise CommandError(f"{field} of the spec must be an object with fields, not {found!r}.")
    return found or {}


def text_in(spec: Mapping[str, Any], field: str) -> str | None:
    """Return a text of a spec, None if there is none. Raise CommandError for anything else."""
    found = spec.get(field)
    if found is not None and not isinstance(found, str):
        raise CommandError(f"{field} of the spec must be a text, not {found!r}.")
    return found


def with_settings(spec: dict[str, Any], settings: Iterable[str] | None) -> dict[str, Any]:
    """Set fields of a spec: `trainer.l1=0.3`. Values are YAML."""
    for setting in settings or ():
        path, value = _pair(setting, "--set", "trainer.l1=0.3")
        *parents, leaf = path.split(".")
        place = spec
        for parent in parents:
            inner = place.setdefault(parent, {})
            if not isinstance(inner, dict):
                raise CommandError(f"--set {setting}: {parent} is not an object in the spec.")
            place = inner
        place[leaf] = _yaml(value, f"--set {setting}")
    for field in ("features", "trainer"):
        object_in(spec, field)
    return spec


def options_of(pairs: Iterable[str] | None, *, repair: bool = False) -> dict[str, str]:
    """Return the options of a format that are given as `name=value`."""
    found = dict(_pair(pair, "--option", "labels=bioes") for pair in pairs or ())
    return found | ({"repair": "true"} if repair else {})


def choices_of(text: str) -> dict[str, list[Any]]:
    """Return a field and the values to try: `trainer.l1=0.1,0.3,1`."""
    field, values = _pair(text, "--search", "trainer.l1=0.1,0.3,1")
    return {field: [_yaml(each, f"--search {text}") for each in values.split(",")]}


def fraction_of(text: str) -> float | None:
    """Return the fraction that a text says, or None if it is not a number."""
    try:
        fraction = float(text)
    except ValueError:
        return None
    if not 0.0 < fraction < 1.0:
        raise CommandError(f"--dev {text}: a part to hold out is between 0 and 1, for example 0.1.")
    return fraction


def folder_of(options: FeatureOptions) -> Path:
    """Return the folder of the spec file, else the current one."""
    return options.spec.parent if options.spec else Path()


def path_of(name: str, folder: Path) -> Path:
    """Return the path of a file that a spec names: beside the spec, else from the current folder."""
    beside = folder / name
    return beside if beside.is_file() else Path(name)


def read(path: Path) -> dict[str, Any]:
    """Read a spec from YAML or JSON."""
    found = _yaml(path.read_text(encoding="utf-8"), str(path))
    if not isinstance(found, dict):
        raise CommandError(f"{path} must contain an object with the fields of a job spec.")
    return found


def _yaml(text: str, where: str) -> Any:
    import yaml  # type: ignore[import-untyped]  # noqa: PLC0415  # it ships no types

    try:
        found = yaml.safe_load(text)
        json.dumps(found, allow_nan=False)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise CommandError(f"{where}{line} is not valid YAML: {getattr(error, 'problem', error)}.") from None
    except (TypeError, ValueError, RecursionError):
        raise CommandError(
            f"{where}: a spec has texts, numbers, lists and objects; dates, .inf and .nan are none of these."
        ) from None
    return found


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise CommandError(f"{option} {text}: write it as NAME=VALUE, for example {example}.")
    return name.strip(), value.strip()


def _without(features: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in features.items() if name not in names}
