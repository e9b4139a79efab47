"""What the parsers of all syntaxes share: reading files line by line, and checking the result."""

from collections.abc import Callable, Sequence

from tagsmith.core.base.errors import Fault, Invalid
from tagsmith.core.features.templates.template import MAX_TEMPLATES, Template


def parse_lines(text: str, parse: Callable[[str], Sequence[Template]], example: str) -> tuple[Template, ...]:
    """Parse a file. `parse` returns the templates of one line, which has no trailing whitespace."""
    templates: list[Template] = []
    faults: list[Fault] = []
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.rstrip()
        if not line:
            continue
        try:
            templates += parse(line)
        except ValueError as error:
            faults.append(Fault(reason=str(error), line=number))
    return distinct(templates, faults, f"Give at least one line, such as {example}.")


def distinct(templates: Sequence[Template], faults: Sequence[Fault], advice: str) -> tuple[Template, ...]:
    """Return the templates without repetitions. Raise Invalid if there are faults, no templates or too many."""
    found = tuple(dict.fromkeys(templates))
    if not found and not faults:
        faults = [Fault(reason=f"No template found. {advice}")]
    if len(found) > MAX_TEMPLATES:
        faults = [Fault(reason=f"There are {len(found)} templates. Use at most {MAX_TEMPLATES}.")]
    if faults:
        raise Invalid("The templates do not parse.", faults[:100], code="invalid_template")
    return found
