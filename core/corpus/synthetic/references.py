"""Generate bibliographic references, written by hand in many inconsistent styles."""

from tagsmith.core.corpus.synthetic import words
from tagsmith.core.corpus.synthetic.line import Line, shortened
from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.words import split_list

_TOPICS = split_list(
    """
    learning inference models language parsing networks retrieval speech vision planning search logic
    systems graphs algorithms markets proteins cells climate energy materials optics memory attention
    evolution ecology history policy theory design control estimation optimization translation semantics
    syntax discourse
    """
)
_QUALITIES = split_list(
    """
    statistical probabilistic efficient robust large-scale online sparse deep hidden conditional random
    neural adaptive structured Bayesian Markov Gaussian distributed empirical comparative modern early
    European
    """
)
_HEADS = split_list(
    """
    An introduction to|On|Towards|A study of|Advances in|Notes on|The role of|Principles of|
    Revisiting
    """
)
_JOURNAL_HEADS = split_list(
    """
    Journal of|Annals of|Transactions on|Review of|Letters in|Advances in|International Journal of
    """
)
_JOURNALS = split_list(
    """
    Nature|Science|Machine Learning|Artificial Intelligence|Cognition|Computational Linguistics|Cell
    """
)
_FIELDS = split_list(
    """
    Learning Linguistics Vision Biology Physics Economics Chemistry Statistics Ecology Robotics Speech
    """
)
_PUBLISHERS = split_list(
    """
    Springer|Elsevier|MIT Press|Oxford University Press|Wiley|Academic Press|Morgan Kaufmann|Kluwer
    """
)
_MEETINGS = split_list(
    """
    ACL EMNLP ICML NIPS COLING IJCAI SIGIR KDD NAACL UAI CVPR
    """
)
_MONTHS = split_list(
    """
    January February March April May June July August September October November December
    """
)


def _person(stream: Stream, surname_first: bool, full: bool) -> str:
    first = words.given_name(stream)
    if not full:
        first = first[0] + "."
        if stream.chance(0.3):
            first += " " + stream.pick("ABCDEFGHJKLMNPRSTW") + "."
    last = words.surname(stream)
    if not surname_first:
        return f"{first} {last}"
    return f"{last}, {first}" if stream.chance(0.8) else f"{last} {first}"


def _people(line: Line, stream: Stream, kind: str) -> None:
    """Add one span per person. A comma inside a name is part of the span; one between names is not."""
    surname_first, full = stream.chance(0.5), stream.chance(0.3)
    count = min(stream.between(1, 5), stream.between(1, 5))
    joint = stream.pick(("and", "&", ", and", ","))
    for number in range(count):
        if number:
            line.plain(joint if number == count - 1 else ",")
        line.field(kind, _person(stream, surname_first, full))
    if stream.chance(0.1):
        line.plain("et al .")


def _title(stream: Stream) -> str:
    parts: list[str] = []
    if stream.chance(0.35):
        parts.append(stream.pick(_HEADS))
    for _ in range(stream.between(1, 3)):
        if stream.chance(0.6):
            parts.append(stream.favour(_QUALITIES))
        parts.append(words.new_word(stream) if stream.chance(0.35) else stream.favour(_TOPICS))
        if stream.chance(0.45):
            parts.append(stream.pick(("of", "for", "in", "and", "with", "from", "under", ":", ",")))
            parts.append(words.new_word(stream) if stream.chance(0.35) else stream.favour(_TOPICS))
    if stream.chance(0.12):
        parts += ["in", stream.pick((words.city(stream), str(stream.between(1880, 2015))))]
    text = " ".join(parts)
    if stream.chance(0.35):
        return text.title()
    return text[0].upper() + text[1:]


def _journal(stream: Stream) -> str:
    if stream.chance(0.25):
        return stream.pick(_JOURNALS)
    if stream.chance(0.15):
        return f"{words.new_word(stream).capitalize()} {stream.pick(('Letters', 'Quarterly', 'Today', 'and Society'))}"
    subject = stream.pick(_FIELDS)
    if stream.chance(0.4):
        subject = f"{stream.favour(_QUALITIES).capitalize()} {subject}"
    if stream.chance(0.25):
        subject += " and " + words.new_word(stream).capitalize()
    name = f"{stream.pick(_JOURNAL_HEADS)} {subject}"
    return shortened(name.split(), stream) if stream.chance(0.35) else name


def _meeting(stream: Stream, year: int) -> str:
    short = stream.pick(_MEETINGS)
    choice = stream.below(4)
    if choice == 0:
        return f"Proceedings of {short}" + (f" {year}" if stream.chance(0.5) else "")
    if choice == 1:
        return f"Proc. {short}-{year % 100:02d}"
    ordinal = f"{stream.between(2, 38)}th"
    subject = f"{stream.favour(_QUALITIES).capitalize()} {stream.pick(_FIELDS)}"
    head = stream.pick(("Proceedings of the", "Proc. of the", "The"))
    return f"{head} {ordinal} {stream.pick(('Conference', 'Workshop', 'Symposium'))} on {subject}"


def _pages(stream: Stream) -> str:
    # One in six looks like a range of years.
    first = stream.between(1890, 2010) if stream.chance(0.17) else stream.between(1, 1400)
    last = first + stream.between(1, 30)
    return f"{first}{stream.pick(('-', '-', '--', ' - '))}{last}" if stream.chance(0.9) else str(first)


class _Reference:
    """Builds one reference in one style."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.line = Line()
        self.year = stream.between(1950, 2020)
        self.year_early = stream.chance(0.45)
        self.quotes = stream.chance(0.3)
        self.stop = stream.pick((".", ".", ",", ","))

    def write(self) -> Line:
        if self.stream.chance(0.08):
            self.line.plain(f"[ {self.stream.between(1, 99)} ]")
        if self.stream.chance(0.94):
            _people(self.line, self.stream, "AUTHOR")
            self.line.plain(self.stop if not self.year_early or self.stream.chance(0.2) else "")
        if self.year_early:
            self._year(bracketed=self.stream.chance(0.7))
            self.line.plain(self.stop if self.stream.chance(0.8) else "")
        self._write_title()
        (self._in_journal, self._in_journal, self._in_meeting, self._in_book)[self.stream.below(4)]()
        if not self.year_early and self.stream.chance(0.92):
            self.line.plain("," if self.stream.chance(0.7) else "")
            self._year(bracketed=self.stream.chance(0.25))
        self.line.plain("." if self.stream.chance(0.8) else "")
        self.line.spoil(self.stream, typos=0.04, drops=0.15)
        self.line.change_case(self.stream, lower=0.06, upper=0.02)
        return self.line

    def _write_title(self) -> None:
        if self.quotes:
            self.line.plain('"')
        self.line.field("TITLE", _title(self.stream))
        self.line.plain(('"' if self.quotes else "") + self.stop)

    def _year(self, *, bracketed: bool) -> None:
        self.line.plain("(" if bracketed else "")
        if not self.year_early and self.stream.chance(0.15):
            self.line.field("DATE", f"{self.stream.pick(_MONTHS)} {self.year}")
        else:
            letter = self.stream.pick("ab") if self.stream.chance(0.06) else ""
            self.line.field("DATE", f"{self.year}{letter}")
        self.line.plain(")" if bracketed else "")

    def _in_journal(self) -> None:
        stream, line = self.stream, self.line
        line.field("JOURNAL", _journal(stream))
        line.plain("," if stream.chance(0.6) else "")
        if stream.chance(0.85):
            line.plain(stream.pick(("", "", "vol.", "Vol.", "volume")))
            line.field("VOLUME", str(stream.between(1, 160)))
            if stream.chance(0.45):
                line.plain("(")
                line.field("NUMBER", str(stream.between(1, 12)))
                line.plain(")")
        if stream.chance(0.85):
            line.plain(stream.pick((":", ",", ", pp.", ", pages", "")))
            line.field("PAGES", _pages(stream))

    def _in_meeting(self) -> None:
        stream, line = self.stream, self.line
        line.plain(stream.pick(("In", "In", "In :", "")))
        line.field("BOOKTITLE", _meeting(stream, self.year))
        if stream.chance(0.5):
            line.plain(", pp." if stream.chance(0.5) else ",")
            line.field("PAGES", _pages(stream))
        if stream.chance(0.5):
            line.plain("," if stream.chance(0.8) else "")
            line.field("PLACE", words.city(stream))

    def _in_book(self) -> None:
        stream, line = self.stream, self.line
        if stream.chance(0.3):
            line.plain("In")
            _people(line, stream, "EDITOR")
            line.plain(stream.pick((", editors,", "( eds. ),", ", Eds.", ",")))
            line.field("BOOKTITLE", _title(stream))
            line.plain(self.stop)
        place = words.city(stream) if stream.chance(0.6) else ""
        publisher = stream.pick(_PUBLISHERS)
        if stream.chance(0.3):
            publisher = f"{words.surname(stream)} {stream.pick(('Press', '& Sons', 'Verlag'))}"
        place_first = stream.chance(0.5)
        if place and place_first:
            line.field("PLACE", place)
            line.plain(":" if stream.chance(0.7) else ",")
        line.field("PUBLISHER", publisher)
        if place and not place_first:
            line.plain("," if stream.chance(0.85) else "")
            line.field("PLACE", place)


def reference(stream: Stream) -> Line:
    """Return one reference."""
    return _Reference(stream).write()
