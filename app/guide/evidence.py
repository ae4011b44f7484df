"""First weights from counts: the network begins as a naive Bayes classifier of the trained wordings.

The log odds of every fact given a piece of a question are factored into a vector of the piece and one of the fact's
topic, whose product they are as nearly as the rank allows. The attention of the first layer begins as a mean that keeps
these vectors, so that the state after a question already points to the topics that its pieces speak for.
"""
import torch

import corpus

SMOOTHING = 0.5  # of a piece seen with a fact, added in proportion to the fact's wordings
LEAST = -2.0     # log odds
TOPIC_NORM = 1.5  # of the topics' vectors
LARGE = 0.98     # the share of the pieces' vectors that are not cut


def log_odds(maker, tok):
    """[pieces, topics], each row less its mean, and the ids of the topics."""
    topics = sorted({tok.special[maker.facts[name].topic] for name in maker.names})
    column = {topic: i for i, topic in enumerate(topics)}
    counts = torch.zeros(len(tok.pieces), len(topics))
    for name in maker.names:
        at = column[tok.special[maker.facts[name].topic]]
        for wording in maker.plain[name]:
            text = corpus.expand(wording, maker.lists, maker.rng)
            for form in (text, text.lower()):
                for piece in set(tok.encode(form)):
                    counts[piece, at] += 0.5
    prior, seen = counts.sum(0) / counts.sum(), counts.sum(1, keepdim=True)
    odds = ((counts + SMOOTHING * prior) / ((seen + SMOOTHING) * prior)).log().clamp(min=LEAST) * (seen > 0)
    return odds - odds.mean(1, keepdim=True), topics


def filled(vectors, width, generator):
    """The vectors, with as much noise in further columns as makes all equally long: norms keep their proportions."""
    lengths = vectors.norm(dim=1, keepdim=True)
    longest = lengths.quantile(LARGE)
    vectors = vectors * (longest / lengths.clamp(min=1e-9)).clamp(max=1)
    noise = torch.randn(len(vectors), width - vectors.shape[1], generator=generator)
    noise *= (longest ** 2 - vectors.norm(dim=1, keepdim=True) ** 2).clamp(min=0).sqrt() / noise.norm(dim=1, keepdim=True)
    return torch.cat((vectors, noise), 1) / longest


@torch.no_grad()
def begin(weights, config, maker, tok, seed):
    """Changes the random weights of network.initial."""
    odds, topics = log_odds(maker, tok)
    n, heads, kv_heads = config["n_embd"], config["n_head"], config["n_head_kv"]
    size = n // heads
    rank, shared = kv_heads * size, heads // kv_heads
    left, strength, right = torch.linalg.svd(odds, full_matrices=False)
    strength = strength[:rank].sqrt()
    embedding = weights["token_embd.weight"]
    usual = embedding.norm(dim=1).mean()
    embedding.copy_(usual * filled(left[:, :rank] * strength, n, torch.Generator().manual_seed(seed)))
    answers = right[:rank].T * strength
    embedding[topics] = torch.cat((answers * (TOPIC_NORM / answers.norm(dim=1).mean()), torch.zeros(len(topics), n - rank)), 1)

    query, value, output = (weights["blk.0.attn_%s.weight" % name] for name in ("q", "v", "output"))
    query *= 0.3
    value *= 0.2
    value[:, :rank] += torch.eye(rank)
    output *= 0.2
    for head in range(heads):
        first = head // shared * size
        output[first:first + size, head * size:(head + 1) * size] += torch.eye(size) / shared
