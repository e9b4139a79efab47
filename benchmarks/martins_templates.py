"""The template sets of Martins, Smith, Aguiar and Figueiredo (2011, section 5): 96 for chunking, 452 for names.

The paper gives windows and counts, not lists. One interpretation of the windows gives 452: an n-gram belongs to a
window if at least one of its positions is in the window. Then 5-grams in windows of 5 are 11 + 12 + 13 + 14 + 15 = 65
templates per column, 3-grams in windows of 3 are 7 + 8 + 9 = 24, and 4 x 65 (tags; case, punctuation and digit
indicators) plus 8 x 24 (words, shapes, three prefixes, three suffixes) are 452. N-grams inside the windows would be
324.

With the same interpretation, 5-grams of tags (65) and 3-grams of words (24) leave 7 of the 96 for shapes, but 2-grams
in a window of 2 would be 11. Seven are the 2-grams that touch a window of 1. Their positions are the two tokens on the
left and the two on the right, which the paper mentions. They are used here.

The label pair is one more template in both sets. Shapes collapse runs of one character type, as in Collins (2002b).
"""

from tagsmith.core.features.spec import FeatureSpec

CHUNKING = FeatureSpec.model_validate(
    {
        "templates": [
            {"grams": 5, "columns": ["1"], "window": 5, "fit": "touch"},
            {"grams": 3, "columns": ["word"], "window": 3, "fit": "touch"},
            {"grams": 2, "columns": ["shape"], "window": 1, "fit": "touch"},
            {"edge": True},
        ],
        "derived": {"shape": {"kind": "collapsed-shape"}},
    }
)

NAMES = FeatureSpec.model_validate(
    {
        "templates": [
            {"grams": 5, "columns": ["1", "case", "punctuation", "digit"], "window": 5, "fit": "touch"},
            {
                "grams": 3,
                "columns": ["word", "shape", "pre1", "pre2", "pre3", "suf1", "suf2", "suf3"],
                "window": 3,
                "fit": "touch",
            },
            {"edge": True},
        ],
        "derived": {
            "case": {"kind": "regex", "pattern": "^\\u", "dialect": "wapiti"},
            "punctuation": {"kind": "regex", "pattern": "\\p", "dialect": "wapiti"},
            "digit": {"kind": "regex", "pattern": "\\d", "dialect": "wapiti"},
            "shape": {"kind": "collapsed-shape"},
            **{f"pre{n}": {"kind": "prefix", "n": n} for n in (1, 2, 3)},
            **{f"suf{n}": {"kind": "suffix", "n": n} for n in (1, 2, 3)},
        },
    }
)
