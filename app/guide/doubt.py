"""When the guide is unsure it gives two answers, and how it learns when.

It then says `<|unsure|>` first, the topic of its best answer, the second one that it thinks of, and both answers. What it
would answer instead is learnt from questions whose answer is already given wrongly: as a neighbour of the right fact.
When to be unsure it can only learn from questions that it was not trained on, of which some wordings are set aside:
there the weights are moved to expect a wrong answer where the one they would give is wrong.
"""
import torch

import check

NEIGHBOURS = 8
WRONG = 3.0  # times as much as a right guess that was doubted weighs a wrong one that was not


def neighbours(facts, odds, topics):
    """For each fact's name the facts that the pieces of its questions speak for most. topics: the facts of the columns of odds."""
    likeness = torch.nn.functional.normalize(odds.T, dim=1)
    likeness = likeness @ likeness.T
    likeness.fill_diagonal_(-1)
    nearest = likeness.topk(NEIGHBOURS, dim=1).indices.tolist()
    return {name: [facts[topics[i]] for i in row] for name, row in zip(topics, nearest)}


class Judge:
    """Knows which facts' answers serve which facts' questions."""

    def __init__(self, facts, tok):
        facts = list({fact.topic: fact for fact in facts.values()}.values())
        self.unsure = tok.special[check.corpus.UNSURE]
        self.topics = torch.tensor([tok.special[fact.topic] for fact in facts])
        self.row = torch.zeros(len(tok.pieces), dtype=torch.long)
        self.row[self.topics] = torch.arange(len(facts))
        self.serves = torch.tensor([[fact is other or check.judge(fact, other.answer, ())[0] for other in facts] for fact in facts])

    def loss(self, scores, topics):
        """Of the doubt alone: scores [n, pieces] after questions that the topics [n] answer. The sum over the questions."""
        guess = scores[:, self.topics].argmax(1)
        right = self.serves[self.row[topics], guess]
        unsure = scores.log_softmax(1)[:, self.unsure]
        sure = torch.log1p(-unsure.exp().clamp(max=1 - 1e-6))
        return -torch.where(right, sure, WRONG * unsure).sum()
