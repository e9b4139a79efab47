"""Raw text: tokens, sentences, and whether the tokens of a corpus could come from text."""
