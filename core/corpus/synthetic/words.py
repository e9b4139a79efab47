"""Names and words: short lists of common ones, and an endless supply of new ones."""

from core.corpus.synthetic.stream import Stream


def listed(text: str) -> tuple[str, ...]:
    """The entries of a list kept as text: apart by bars if there are any, by blanks otherwise."""
    entries = text.split("|") if "|" in text else text.split()
    return tuple(entry.strip() for entry in entries)


GIVEN = listed(
    """
    John Mary Peter Anna James Laura Robert Elena David Sofia Thomas Ingrid Carlos Yuki Wei Fatima Ahmed
    Priya Lars Chiara Pierre Helen Victor Nadia Martin Olga Samuel Grace Jordan Austin Florence Sydney
    Chelsea
    """
)

#: The last ones are places as well, and some of those are given names or ordinary words too.
SURNAMES = listed(
    """
    Smith Garcia Mueller Rossi Tanaka Kim Novak Silva Andersson Dubois Ivanov Khan Patel Nguyen Chen Brown
    Taylor Wilson Jansen Kowalski Moreau Schmidt Okafor Haddad Lindqvist Baker Cook Young King Field Page
    May March Press London Lincoln Houston Austin Paris Berlin Hamilton Wellington Jordan Carlisle Durham
    Lancaster Chester York
    """
)

CITIES = listed(
    """
    London Paris Berlin Houston Lincoln Austin Hamilton Wellington Carlisle Durham Lancaster Chester York
    Boston Cambridge Oxford Madrid Vienna Dublin Leeds Bristol Toronto Denver Portland Jordan Reading Bath
    Mobile Orange Florence Sydney Chelsea Richmond Albany Salem Geneva Athens Milan Lyon Porto
    """
)

_STARTS = listed(
    """
    b br c ch cl d dr f fr g gr h j k kl l m n p pr r s sch sh st t tr v w z
    """
)
_VOWELS = listed(
    """
    a e i o u a e i o ai ei ou ie au
    """
)
_MIDDLES = listed(
    """
    b d g l ll m n nd ng r rd rn rt s ss st t th v z
    """
)

_SURNAME_ENDS = listed(
    """
    er man sen son ov ska ski ini elli ez berg stein wald mann ward ton ley shaw
    """
)
_PLACE_ENDS = listed(
    """
    ton ham ford bury ville burg field mouth port wick stead by er son ley berg wald
    """
)
_WORD_STARTS = listed(
    """
    anti auto bio con de dis geo hyper inter intra macro meta micro multi neo non para poly post pre proto
    quasi re semi sub super trans un under
    """
)
_WORD_ENDS = listed(
    """
    tion ment ity ness ance ism ing al ous ive able ology ics ation ure ant ers
    """
)


def _stem(stream: Stream, syllables: int) -> str:
    parts = [stream.pick(_STARTS)]
    for number in range(syllables):
        parts.append(stream.pick(_VOWELS))
        if number + 1 < syllables:
            parts.append(stream.pick(_MIDDLES))
    return "".join(parts) + stream.pick(("l", "n", "r", "s", "t", "m", "d", ""))


def given(stream: Stream) -> str:
    """A given name."""
    return stream.favour(GIVEN) if stream.chance(0.8) else _stem(stream, 2).capitalize()


def surname(stream: Stream) -> str:
    """A surname: often a common one, often one never seen before, sometimes a place."""
    if stream.chance(0.55):
        return stream.pick(SURNAMES)
    made = (_stem(stream, 1) + stream.pick(_SURNAME_ENDS)).capitalize()
    if stream.chance(0.06):
        return f"{made}-{stream.pick(SURNAMES)}"
    return stream.pick(("Mc", "O'", "Van", "De")) + made if stream.chance(0.05) else made


def city(stream: Stream) -> str:
    """A town; new ones sound much like new surnames."""
    if stream.chance(0.6):
        return stream.favour(CITIES)
    return (_stem(stream, 1) + stream.pick(_PLACE_ENDS)).capitalize()


def coined(stream: Stream) -> str:
    """A lower-case word never seen before."""
    start = stream.pick(_WORD_STARTS) if stream.chance(0.4) else ""
    return start + _stem(stream, 1) + stream.pick(_WORD_ENDS)
