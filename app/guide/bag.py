"""Teachers: classifiers that see a question as a bag of its words, their parts and relatives, and pairs of words.

They are trained in minutes and together place more questions than a network does that was trained on the wordings alone;
in the file there is no room for them (every feature has a vector), so the network learns what they say, also of questions that no
wording has. The idea is that of Joulin et al., "Bag of Tricks for Efficient Text Classification" (2016).
"""
import collections
import math
import re

import numpy as np
import torch
import torch.nn.functional as F

import subwords

LENGTHS = range(2, 5)
WIDTH = 256
EPOCHS = 15
RATE = 0.01
BETAS = 0.9, 0.999
BATCH = 512
DROPPED = 0.65  # share of the features of a question that is left out in training
RELATIVE = 0.5  # how much a relative counts

MEANINGS = subwords.relatives()
known = {}


def features(text):
    words = re.findall(r"[^\s?.!,]+", text.lower())
    out = []
    for word in words:
        if word not in known:
            known[word] = ["=" + word] + subwords.n_grams("<" + word + ">", LENGTHS) + MEANINGS.get(word, ["~" + word])
        out += known[word]
    return out + [a + " " + b for a, b in zip(words, words[1:])]


class Index:
    """The features that more than one of the texts has, and how telling each is."""

    def __init__(self, texts):
        count = collections.Counter(feature for text in texts for feature in dict.fromkeys(features(text)))
        kept = [feature for feature in count if count[feature] > 1]
        self.ids = {feature: i for i, feature in enumerate(kept)}
        self.telling = np.array([math.log(len(texts) / count[f]) * (RELATIVE if f[0] == "~" else 1) for f in kept], dtype=np.float32)

    def encode(self, texts):
        """(ids, weights, length of each text): the weights of a text have the norm 1."""
        rows = []
        for text in texts:
            count = collections.Counter(self.ids[f] for f in features(text) if f in self.ids)
            ids = np.fromiter(count, dtype=np.int32, count=len(count))
            weights = (1 + np.log(np.fromiter(count.values(), dtype=np.float32, count=len(count)))) * self.telling[ids]
            rows.append((ids, weights / (np.linalg.norm(weights) + 1e-6)))
        return (np.concatenate([ids for ids, _ in rows]), np.concatenate([weights for _, weights in rows]).astype(np.float32),
                np.array([len(ids) for ids, _ in rows]))


class Bag:
    def __init__(self, n_features, n_topics, device):
        self.features = (torch.randn(n_features, WIDTH) * 0.1).to(device)
        self.topics = (torch.randn(n_topics, WIDTH) * 0.06).to(device).requires_grad_()
        self.scale = torch.tensor(10.0, device=device, requires_grad=True)

    def scores_of(self, ids, weights, lengths, features):
        pooled = F.embedding_bag(ids, features, lengths.cumsum(0) - lengths, mode="sum", per_sample_weights=weights)
        with torch.autocast(ids.device.type, torch.bfloat16):
            return F.linear(pooled, self.topics).float() * self.scale

    def scores(self, bags, rows):
        """bags: Rows. rows: which of them."""
        return self.scores_of(*bags.take(rows), self.features)

    def train(self, bags, topics, n_rounds):
        """Every epoch goes through one of the first n_rounds rounds. topics [rows of a round]."""
        optimiser, moments = torch.optim.Adam([self.topics, self.scale], lr=RATE), [torch.zeros_like(self.features) for _ in range(2)]
        for epoch in range(EPOCHS):
            rate = optimiser.param_groups[0]["lr"] = RATE * (1 - epoch / EPOCHS)
            order = torch.randperm(len(topics)).to(topics.device)
            for places in order.split(BATCH):
                ids, weights, lengths = leave_out(*bags.take(places + epoch % n_rounds * len(topics)))
                there, ids = ids.unique(return_inverse=True)
                features = self.features[there].requires_grad_()
                F.cross_entropy(self.scores_of(ids, weights, lengths, features), topics[places]).backward()
                optimiser.step()
                optimiser.zero_grad(set_to_none=True)
                self.move(there, features.grad, moments, rate)

    def move(self, there, gradient, moments, rate):
        """A step of Adam for the features that are there, without the correction of its first steps."""
        mean, square = (moment[there] * beta + value * (1 - beta) for moment, beta, value in zip(moments, BETAS, (gradient, gradient * gradient)))
        moments[0][there], moments[1][there] = mean, square
        self.features[there] -= rate * mean / (square.sqrt() + 1e-8)


def leave_out(ids, weights, lengths):
    """Without some of the features."""
    kept = torch.rand_like(weights) > DROPPED
    row = torch.repeat_interleave(torch.arange(len(lengths), device=ids.device), lengths)[kept]
    return ids[kept], weights[kept] / (1 - DROPPED) ** 0.5, torch.bincount(row, minlength=len(lengths))


class Rows:
    """Rows of several lengths, one behind the other: the bags of questions."""

    def __init__(self, parts, device):
        """parts: [(ids, weights, lengths)]"""
        self.ids, self.weights, self.lengths = (torch.from_numpy(np.concatenate(column)).to(device) for column in zip(*parts))
        self.starts = self.lengths.cumsum(0) - self.lengths

    def take(self, rows):
        lengths = self.lengths[rows]
        starts = lengths.cumsum(0) - lengths
        places = torch.repeat_interleave(self.starts[rows] - starts, lengths) + torch.arange(int(lengths.sum()), device=rows.device)
        return self.ids[places].long(), self.weights[places], lengths
