"""Online learners with one update direction per sample: perceptron, PA, MIRA, DCA, CW, AROW."""

#: The order of the kinds in the HTTP contract; other kinds follow by name.
ORDER = ("perceptron", "averaged-perceptron", "pa", "mira", "dca", "cw", "arow")
