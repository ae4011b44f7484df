"""The questions that the guide learns from: every wording, once for each of ROUNDS, in tokens and as bags of features."""
import multiprocessing

import numpy as np

import bag
import corpus

AS_IT_STANDS, VARIED, MISTYPED, SCRAMBLED = range(4)
ROUNDS = (AS_IT_STANDS,) * 2 + (VARIED,) * 3 + (MISTYPED,) * 2 + (SCRAMBLED,) * 5
N_KNOWN = ROUNDS.index(SCRAMBLED)  # rounds whose questions have the topic of their wording
LONGEST = 60  # tokens of a question


def ask(round_and_seed):
    """The texts of a round."""
    kind, seed = round_and_seed
    maker = corpus.Maker(seed)
    make = {AS_IT_STANDS: maker.as_it_stands, VARIED: maker.varied, MISTYPED: maker.mistyped, SCRAMBLED: maker.scrambled}[kind]
    return [make(name, wording) for name in maker.names for wording in maker.plain[name]]


def encode(texts):
    rows = [state["tok"].encode(corpus.as_read(text))[:LONGEST] for text in texts]
    return np.concatenate([np.array(row, dtype=np.int32) for row in rows]), np.array([len(row) for row in rows]), state["index"].encode(texts)


state = {}  # of the processes that encode


class Questions:
    """ids: of all tokens, one question behind the other. starts, lengths: of each in them. topics: of the wordings, in the order of maker.names.
    bags: [(ids, weights, lengths)] by round. n: questions of a round."""

    def __init__(self, maker, tok, seed):
        with multiprocessing.Pool() as pool:
            texts = pool.map(ask, [(kind, seed + i) for i, kind in enumerate(ROUNDS)], 1)
        state.update(tok=tok, index=bag.Index(texts[0]))
        with multiprocessing.Pool() as pool:
            rounds = pool.map(encode, texts, 1)
        self.n = len(texts[0])
        self.ids, self.lengths = (np.concatenate(column) for column in list(zip(*rounds))[:2])
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.bags, self.n_features = [bags for _, _, bags in rounds], len(state["index"].ids)
        self.topics = np.array([i for i, name in enumerate(maker.names) for _ in maker.plain[name]])

    def some_of_all(self, n_rounds, rng):
        """Rows of every wording, from one of the first rounds each."""
        return rng.permutation(self.n) + rng.integers(0, n_rounds, self.n) * self.n

    def batches(self, draw, size, rng):
        """The rows that draw() gives, again and again, about equally long ones together."""
        while True:
            rows = draw()
            for some in np.array_split(rows, max(1, len(rows) // (size * 12))):
                some = some[np.argsort(self.lengths[some], kind="stable")]
                batches = [some[i:i + size] for i in range(0, len(some), size)]
                rng.shuffle(batches)
                yield from batches

    def padded(self, rows, before, after):
        """ids [rows, longest] and the place of each last token; before, after: tokens around every question."""
        asked, lengths = self.lengths[rows, None], self.lengths[rows] + len(before) + len(after)
        ids = np.zeros((len(rows), lengths.max()), dtype=np.int64)
        ids[:, :len(before)] = before
        place = np.arange(ids.shape[1] - len(before))[None].repeat(len(rows), 0)
        there = place < asked
        ids[:, len(before):][there] = self.ids[(self.starts[rows, None] + place)[there]]
        np.put_along_axis(ids, len(before) + asked + np.arange(len(after)), np.asarray(after)[None], 1)
        return ids, lengths - 1
