"""Generate postal addresses, written on one line as people do."""

from tagsmith.core.corpus.synthetic import words
from tagsmith.core.corpus.synthetic.line import Line
from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.words import split_list

_STREET_KINDS = split_list(
    """
    Street St Road Rd Avenue Ave Lane Ln Drive Dr Court Ct Way Place Square Terrace Close
    """
)
_STREET_NAMES = split_list(
    """
    High Church Station Park Main Victoria Mill King Queen School Green Oak Spring North
    """
)
_COMPANIES = split_list(
    """
    Ltd Inc GmbH Partners Group Brothers Bakery Logistics Consulting Press Books Garage Hotel
    """
)
_REGIONS = split_list(
    """
    TX CA NY OH PA WA Kent Surrey Essex Devon Yorkshire Ontario Bavaria Victoria Lincoln Durham
    """
)
_COUNTRIES = split_list(
    """
    USA|UK|United Kingdom|Germany|France|Canada|Australia|Jordan|Ireland|Spain|United States|
    Georgia
    """
)
_UNITS = split_list(
    """
    Apt Flat Suite Unit Room Floor Apartment
    """
)
_LETTERS = "ABCDEFGHJKLMNPRSTWY"


def _recipient(stream: Stream) -> tuple[str, str]:
    if stream.chance(0.3):
        owner = words.surname(stream) if stream.chance(0.6) else words.new_word(stream).capitalize()
        second = f" & {words.surname(stream)}" if stream.chance(0.15) else ""
        return "ORG", f"{owner}{second} {stream.pick(_COMPANIES)}"
    title = stream.pick(("Mr ", "Mrs ", "Ms ", "Dr ")) if stream.chance(0.25) else ""
    first = words.given_name(stream) if stream.chance(0.8) else words.given_name(stream)[0] + "."
    if stream.chance(0.08):
        return "PERSON", f"{words.surname(stream)}, {first}"
    return "PERSON", f"{title}{first} {words.surname(stream)}"


def _street(stream: Stream) -> str:
    # Streets are named after people, towns, regions and common words.
    name = stream.pick(
        (stream.pick(_STREET_NAMES), words.surname(stream), words.city(stream), stream.pick(_REGIONS[6:]))
    )
    if stream.chance(0.1):
        return f"{stream.between(1, 120)}th {stream.pick(('Street', 'St', 'Avenue', 'Ave'))}"
    if stream.chance(0.12):
        name = f"{stream.pick(('North', 'South', 'East', 'West', 'Old', 'Upper', 'St'))} {name}"
    if stream.chance(0.1):
        return f"{stream.pick(('Rue de', 'Via', 'Calle', 'The'))} {name}"
    return name if stream.chance(0.12) else f"{name} {stream.pick(_STREET_KINDS)}"


def _postcode(stream: Stream) -> str:
    style = stream.below(4)
    if style == 0:
        outer = stream.pick(_LETTERS) + (stream.pick(_LETTERS) if stream.chance(0.5) else "")
        return (
            f"{outer}{stream.between(1, 28)} {stream.below(10)}{stream.pick(_LETTERS)}{stream.pick(_LETTERS)}"
        )
    if style == 1:
        return f"{stream.between(1001, 9999)}"
    return f"{stream.between(10000, 99999)}"


class _Address:
    """Builds one address."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.line = Line()
        self.comma = "," if stream.chance(0.6) else ""
        self.number_last = stream.chance(0.25)
        self.postcode_first = stream.chance(0.3)

    def write(self) -> Line:
        stream, line = self.stream, self.line
        if stream.chance(0.75):
            line.field(*_recipient(stream))
            self._gap()
            if stream.chance(0.08):
                line.plain("c/o")
                line.field(*_recipient(stream))
                self._gap()
        unit_early = stream.chance(0.4)
        if unit_early:
            self._unit()
        if stream.chance(0.07):
            line.field("BOX", stream.pick(("PO Box ", "P.O. Box ", "Box ")) + str(stream.between(1, 9999)))
        else:
            self._street()
        self._gap()
        if not unit_early:
            self._unit()
        self._town()
        if stream.chance(0.45):
            self._gap()
            line.field("COUNTRY", stream.pick(_COUNTRIES))
        line.spoil(stream, typos=0.05, drops=0.25)
        line.change_case(stream, lower=0.12, upper=0.12)
        return line

    def _gap(self) -> None:
        self.line.plain(self.comma if self.stream.chance(0.9) else "")

    def _unit(self) -> None:
        stream = self.stream
        if not stream.chance(0.25):
            return
        number = f"{stream.between(1, 400)}" + (stream.pick("ABC") if stream.chance(0.2) else "")
        if stream.chance(0.15):
            self.line.field("UNIT", f"# {number}")
        elif stream.chance(0.85):
            self.line.field("UNIT", f"{stream.pick(_UNITS)} {number}")
        else:
            self.line.field("UNIT", number)
        self._gap()

    def _street(self) -> None:
        stream, line = self.stream, self.line
        number = str(min(stream.between(1, 2400), stream.between(1, 2400)))
        number += stream.pick("abAB") if stream.chance(0.08) else ""
        numbered = stream.chance(0.9)
        if numbered and not self.number_last:
            line.field("NUMBER", number)
        line.field("STREET", _street(stream))
        if numbered and self.number_last:
            line.field("NUMBER", number)

    def _town(self) -> None:
        stream, line = self.stream, self.line
        postcode = _postcode(stream) if stream.chance(0.85) else ""
        if postcode and self.postcode_first:
            line.field("POSTCODE", postcode)
        if stream.chance(0.95):
            line.field("CITY", self._city())
        if stream.chance(0.4):
            self._gap()
            line.field("REGION", stream.pick(_REGIONS))
        if postcode and not self.postcode_first:
            line.plain(self.comma if stream.chance(0.3) else "")
            line.field("POSTCODE", postcode)

    def _city(self) -> str:
        name = words.city(self.stream)
        if self.stream.chance(0.1):
            return f"{self.stream.pick(('New', 'San', 'Port', 'St', 'West'))} {name}"
        return f"{name}-on-{words.city(self.stream)}" if self.stream.chance(0.03) else name


def address(stream: Stream) -> Line:
    """Return one address."""
    return _Address(stream).write()
