"""Vectors that words share, in training only: what is learnt of "lag" serves "laggy", "Lag" and "stutter" too.

The embedding of a piece is a vector of its own plus those of its character n-grams, as in Bojanowski et al., "Enriching
Word Vectors with Subword Information" (2017), plus those of the words that the thesaurus puts beside it. The file has the
sums: a table like any other.
"""
import collections

import torch
import torch.nn.functional as F

import corpus
import tokenizer

LENGTHS = range(3, 6)
NAME = "parts"  # of their matrix among the weights


def relatives():
    """{word: how it shares a meaning}: the first word of its own family, and of the families of its relatives."""
    lines = corpus.thesaurus()
    first = {}
    for family, _ in lines:
        for word in family:
            first.setdefault(word, family[0])
    out = collections.defaultdict(list)
    for family, near in lines:
        for word in family:
            out[word] += ["~" + first[word]] + ["~" + first.get(other, other) for other in near]
    return out


def n_grams(word, lengths):
    return [word[i:i + n] for n in lengths for i in range(len(word) - n + 1)]


def parts_of(piece, meanings):
    """The n-grams of a piece between "<" and ">", in lower case (the whole word is one of them), and its meanings."""
    word = piece.replace(tokenizer.SPACE, "").lower()
    if not any(c.isalpha() for c in word) or piece.startswith("<"):
        return []
    shared, word = meanings.get(word, ["~" + word]), "<" + word + ">"
    return sorted({word, *shared, *n_grams(word, LENGTHS)})


class Subwords:
    def __init__(self, pieces, device="cpu"):
        meanings = relatives()
        parts = [parts_of(piece, meanings) for piece in pieces]
        count = collections.Counter(part for some in parts for part in some)
        ids = {part: i for i, part in enumerate(part for part in count if count[part] > 1)}
        parts = [[ids[part] for part in some if part in ids] for some in parts]
        sizes = torch.tensor([len(some) for some in parts])
        self.names = list(ids)
        self.ids = torch.tensor([i for some in parts for i in some], device=device)
        self.starts = (sizes.cumsum(0) - sizes).to(device)
        self.shares = torch.repeat_interleave(sizes.clamp(min=1).rsqrt(), sizes).to(device)

    def initial(self, width):
        return torch.zeros(len(self.names), width)

    def applied(self, weights):
        """The weights with the sums in the table of embeddings, and without the parts."""
        sums = F.embedding_bag(self.ids, weights[NAME], self.starts, mode="sum", per_sample_weights=self.shares)
        out = {name: weight for name, weight in weights.items() if name != NAME}
        out["token_embd.weight"] = weights["token_embd.weight"] + sums
        return out
