"""A literal, slow scorer: the rules of conlleval spelt out pair by pair, walking one token at a time."""

from collections import Counter
from dataclasses import dataclass, field

BREAK = ("O", "")


def parse(label: str) -> tuple[str, str]:
    if "-" in label:
        cut = label.index("-")
        return label[:cut], label[cut + 1 :]
    return label, ""


def end_of_chunk(previous_tag: str, tag: str, previous_type: str, type_: str) -> bool:
    end = False
    if previous_tag == "B" and tag == "B":
        end = True
    if previous_tag == "B" and tag == "O":
        end = True
    if previous_tag == "I" and tag == "B":
        end = True
    if previous_tag == "I" and tag == "O":
        end = True
    if previous_tag == "E" and tag == "E":
        end = True
    if previous_tag == "E" and tag == "I":
        end = True
    if previous_tag == "E" and tag == "O":
        end = True
    if previous_tag not in ("O", ".") and previous_type != type_:
        end = True
    if previous_tag == "]":
        end = True
    if previous_tag == "[":
        end = True
    return end


def start_of_chunk(previous_tag: str, tag: str, previous_type: str, type_: str) -> bool:
    start = False
    if previous_tag == "B" and tag == "B":
        start = True
    if previous_tag == "I" and tag == "B":
        start = True
    if previous_tag == "O" and tag == "B":
        start = True
    if previous_tag == "O" and tag == "I":
        start = True
    if previous_tag == "E" and tag == "E":
        start = True
    if previous_tag == "E" and tag == "I":
        start = True
    if previous_tag == "O" and tag == "E":
        start = True
    if tag not in ("O", ".") and previous_type != type_:
        start = True
    if tag == "[":
        start = True
    if tag == "]":
        start = True
    return start


@dataclass
class Twin:
    correct: Counter[str] = field(default_factory=Counter)
    gold: Counter[str] = field(default_factory=Counter)
    predicted: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    tokens_correct: int = 0


def score(sentences: list[tuple[list[str], list[str]]]) -> Twin:
    """Counts over (gold labels, predicted labels) of each sentence."""
    twin = Twin()
    last_gold = last_predicted = BREAK
    in_correct = False
    steps = []
    for gold, predicted in sentences:
        steps += [(parse(g), parse(p), True) for g, p in zip(gold, predicted, strict=True)]
        steps.append((BREAK, BREAK, False))
    for gold_now, predicted_now, is_token in steps:
        gold_pair = (last_gold[0], gold_now[0], last_gold[1], gold_now[1])
        predicted_pair = (last_predicted[0], predicted_now[0], last_predicted[1], predicted_now[1])
        gold_ends, predicted_ends = end_of_chunk(*gold_pair), end_of_chunk(*predicted_pair)
        if in_correct:
            if gold_ends and predicted_ends and last_gold[1] == last_predicted[1]:
                in_correct = False
                twin.correct[last_gold[1]] += 1
            elif gold_ends != predicted_ends or gold_now[1] != predicted_now[1]:
                in_correct = False
        gold_starts, predicted_starts = start_of_chunk(*gold_pair), start_of_chunk(*predicted_pair)
        if gold_starts and predicted_starts and gold_now[1] == predicted_now[1]:
            in_correct = True
        twin.gold[gold_now[1]] += gold_starts
        twin.predicted[predicted_now[1]] += predicted_starts
        if is_token:
            twin.tokens += 1
            twin.tokens_correct += gold_now == predicted_now
        last_gold, last_predicted = gold_now, predicted_now
    if in_correct:
        twin.correct[last_gold[1]] += 1
    return twin
