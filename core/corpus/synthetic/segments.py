"""Generate segmented Chinese sentences: one per line, words separated by two blanks.

Words share characters on purpose (中国, 国家, 家人, 人民), so that a character alone does not tell where a word ends.
Personal names are made of characters and are therefore mostly new.
"""
# ruff: noqa: RUF001  # Chinese punctuation

from collections.abc import Mapping, Sequence

from tagsmith.core.corpus.synthetic.stream import Stream
from tagsmith.core.corpus.synthetic.words import split_list

_SURNAMES = "王李张刘陈杨赵黄周吴"
_GIVEN = "伟芳娜敏静强磊军洋勇艳杰娟涛明超秀霞平刚桂英华文国家人民中天"
_PLACES = split_list(
    "中国 北京 上海 天津 南京 广州 武汉 西安 国家 中心 学校 大学 公司 公园 医院 车站 市场 家乡"
)
_PEOPLE = split_list("人民 家人 国人 工人 学生 大学生 老师 医生 公司 职工 市民 专家 国家 主席 记者")
_THINGS = split_list(
    "经济 生活 工作 学习 文化 科学 技术 市场 问题 工程 计划 新闻 汽车 电话 天气 中药 大会 国家 大事"
)
_VERBS = split_list(
    "发展 提高 研究 学习 工作 参加 举行 了解 认为 表示 开始 解决 关心 生活 会 开会 出发 到达 买 看 在"
)
_ADJECTIVES = split_list("新 大 好 重要 美好 科学 伟大 国际 人民 中等 主要")
_ADVERBS = split_list("正在 已经 将 都 也 不 非常 一直 共同")
_TIMES = split_list("今天 明天 昨天 今年 明年 上午 下午 中午 天天")
_NUMBERS = "一二三四五六七八九十"
#: `P` a person, `L` a place, `W` people, `T` a thing, `V` a verb, `A` an adjective, `B` an adverb, `D` a time,
#: `N` a number.
_PATTERNS = split_list(
    """
    D P 在 L V T 。|W B V T 。|L 的 W V A 的 T 。|P 和 P D 到 L V 。|A 的 T 使 W 的 T B V 。|
    N 个 W 在 L V A T ， P 说 。|L V N 年 A T 计划 。|W 们 B V T 和 T ， D B 在 L V 。|P 是 L 的 W 。|
    D 的 T B 不 A 。|从 L 到 L ， W B V 。|P V ： “ T B A ” 。
    """
)


def _person(stream: Stream) -> str:
    given = "".join(stream.pick(_GIVEN) for _ in range(stream.between(1, 2)))
    return stream.pick(_SURNAMES) + given


def _number(stream: Stream) -> str:
    return "".join(stream.pick(_NUMBERS) for _ in range(stream.between(1, 3)))


_LISTS: Mapping[str, Sequence[str]] = {
    "L": _PLACES,
    "W": _PEOPLE,
    "T": _THINGS,
    "V": _VERBS,
    "A": _ADJECTIVES,
    "B": _ADVERBS,
    "D": _TIMES,
}


def _word(part: str, stream: Stream) -> str:
    if part == "P":
        return _person(stream)
    if part == "N":
        return _number(stream)
    return stream.favour(_LISTS[part]) if part in _LISTS else part


def segments(stream: Stream) -> str:
    """Return one sentence as a line of words separated by two blanks."""
    return "  ".join(_word(part, stream) for part in stream.pick(_PATTERNS).split()) + "\n"
