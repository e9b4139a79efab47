"""Generate sentences about people, places and organizations, for models that tag plain text.

Names are ambiguous on purpose: surnames are also towns and months, towns are also given names, organizations are named
after people and towns. The words around a name, and its spelling, decide.
"""

from collections.abc import Callable, Mapping

from tagsmith.core.corpus.synthetic import words
from tagsmith.core.corpus.synthetic.line import Line
from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.words import split_list

#: `P` is a person, `L` a location, `G` an organization, `D` a day, `N` a number. Everything else is text.
_PATTERNS = split_list(
    """
    P wrote to P in L .|P met P at G on D .|P moved from L to L in N .|The mayor of L , P , resigned on D .|
    G said on D that P would join its board .|" I have never been to L , " P told P .|
    P , who was born in L , worked for G until N .|G opened an office in L .|P and P founded G in N .|
    In L , P spoke to reporters from G .|According to P , the train to L was late again .|
    The letter that P sent to G never reached L .|P teaches at G .|Dr P of G disagreed .|
    Nobody in L remembers P .|Shares of G fell N percent after P left .|P lives near L with N cats .|
    A spokesman for G declined to comment .|P played for L against L on D .|Yesterday P called P from L .|
    The idea to ask G came from P .|The museum in L shows N letters by P .|P bought the house of P in L for N dollars .|
    We visited L , L and L .|The weather was fine on D .|Nothing happened for N days .|They asked for more time .|
    G and G announced a merger on D .|"Call P at once , " said P .|P did not answer .|
    The sister of P studied in L before she joined G .|Prices rose again in N .|The river floods every spring .
    """
)
_DAYS = split_list("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_TITLES = split_list("Mr Mrs Ms Sir Lady Professor")
_ORGANIZATION_ENDS = split_list(
    "University|College|Bank|Press|Institute|Motors|Airlines|Holdings|Labs|Group|Council|United"
)
_ORGANIZATION_STARTS = split_list("Bank of|University of|Institute of|Port of|Friends of")


def _person(stream: Stream) -> str:
    surname = words.surname(stream)
    if stream.chance(0.2):
        return surname
    if stream.chance(0.15):
        return f"{stream.pick(_TITLES)} {surname}"
    first = words.given_name(stream)
    if stream.chance(0.12):
        first = f"{first[0]}."
    elif stream.chance(0.08):
        first = f"{first} {words.given_name(stream)[0]}."
    return f"{first} {surname}"


def _location(stream: Stream) -> str:
    town = words.city(stream)
    return f"{stream.pick(('New', 'North', 'South', 'Port', 'Lake'))} {town}" if stream.chance(0.12) else town


def _organization(stream: Stream) -> str:
    owner = stream.pick((words.surname(stream), words.city(stream), words.new_word(stream).capitalize()))
    if stream.chance(0.25):
        return f"{stream.pick(_ORGANIZATION_STARTS)} {words.city(stream)}"
    if stream.chance(0.12):
        return f"{owner} & {words.surname(stream)}"
    return f"{owner} {stream.pick(_ORGANIZATION_ENDS)}"


_NAMES: Mapping[str, tuple[str, Callable[[Stream], str]]] = {
    "P": ("PER", _person),
    "L": ("LOC", _location),
    "G": ("ORG", _organization),
}


def people(stream: Stream) -> str:
    """Return one sentence as column text: token and label."""
    line = Line()
    for part in stream.pick(_PATTERNS).split():
        if part in _NAMES:
            label, name = _NAMES[part]
            line.field(label, name(stream))
        elif part == "D":
            line.plain(stream.pick(_DAYS))
        elif part == "N":
            line.plain(str(stream.between(1800, 2026) if stream.chance(0.5) else stream.between(2, 90)))
        else:
            line.plain(part)
    line.change_case(stream, lower=0.03, upper=0.02)
    return line.conll(classes=False)
