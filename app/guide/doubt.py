"""When the guide is unsure: the output vector of UNSURE, fitted last, to wordings that nothing else was learnt from.

The score of UNSURE shall exceed that of the best topic where the answer to that topic is likely not right, as check.py judges,
and never that of the best piece within an answer, or after a question that the program itself suggests. That is a logistic
regression on the states of the network.
"""
import itertools

import torch
import torch.nn.functional as F

import corpus
import network

SEED = 2
WRONG = 24.0  # a wrong answer is so many times as bad as a list where one answer would have done
DECAY = 1e-3
STEPS, RATE = 1000, 0.05
N_AFTER = 20  # turns that each suggested question comes after, besides alone
N_ELSEWHERE = 120  # batches of chats: every answer comes in several
MARGIN = 4  # by which UNSURE shall be behind elsewhere
SLIP = 4.0  # what being unsure elsewhere weighs
HARDEST = 2000  # one in so many of the places elsewhere counts: those where it is least behind, as one slip spoils an answer


def encode_turns(tok, chat):
    return sum((corpus.encode_question(tok, question) + tok.encode(fact.said) + [tok.special["<|im_end|>"]]
                for question, fact in corpus.remembered(chat)), [])


@torch.no_grad()
def states_of(weights, tok, ids, wanted):
    """(states, scores of all pieces but UNSURE)"""
    with torch.autocast(ids.device.type, torch.bfloat16):
        states = network.hidden(weights, network.CONFIG, ids, wanted)
        scores = network.logits(weights, states).float()
    scores[:, tok.special[corpus.UNSURE]] = -1e9
    return states.float(), scores


def asked(weights, tok, device, facts, questions):
    """(states, best score, whether the best topic is wrong) after each of [(facts that answer, chat before, question)]."""
    facts = {tok.special[fact.topic]: fact for fact in facts.values()}
    rows = [(encode_turns(tok, chat) + corpus.encode_question(tok, question), meant) for meant, chat, question in questions]
    rows.sort(key=lambda row: len(row[0]))
    out = []
    for _, group in itertools.groupby(rows, lambda row: len(row[0])):
        ids, meant = zip(*group)
        ids = torch.tensor(ids, device=device)
        states, scores = states_of(weights, tok, ids, torch.arange(ids.shape[1], device=device).expand(ids.shape) == ids.shape[1] - 1)
        best = scores.max(1)
        right = [said in facts and any(corpus.is_right(fact, facts[said].said) for fact in some)
                 for some, said in zip(meant, best.indices.tolist())]
        out.append((states, best.values, 1 - torch.tensor(right, device=device).float()))
    return [torch.cat(column) for column in zip(*out)]


def elsewhere(weights, tok, chats, end_of_question):
    """(states, best score) within answers and lists, where UNSURE would be wrong."""
    out = []
    for _ in range(N_ELSEWHERE):
        ids, targets = next(chats)
        wanted = (targets >= 0) & (ids != end_of_question)
        if wanted.any():
            states, scores = states_of(weights, tok, ids, wanted)
            out.append((states, scores.max(1).values))
    return (torch.cat(column) for column in zip(*out))


def learn(weights, output, tok, chats, end_of_question):
    """Sets the row of UNSURE in `output`, the output table. Returns the share of the questions set aside that the guide is unsure of."""
    maker = corpus.Maker(SEED)
    states, best, wrong = asked(weights, tok, output.device, maker.facts, corpus.questions_set_aside(maker))
    suggested = asked(weights, tok, output.device, maker.facts, corpus.suggested_questions(maker, N_AFTER))[:2]
    other_states, other_best = (torch.cat(pair) for pair in zip(elsewhere(weights, tok, chats, end_of_question), suggested))
    row = (states.mean(0) * best.median() / states.mean(0).pow(2).sum()).requires_grad_()
    optimiser = torch.optim.Adam([row], lr=RATE)
    for step in range(STEPS):
        optimiser.param_groups[0]["lr"] = RATE * (1 - step / STEPS)
        loss = F.binary_cross_entropy_with_logits(states @ row - best, wrong, 1 + (WRONG - 1) * wrong)
        elsewhere_loss = F.softplus(other_states @ row - other_best + MARGIN)
        loss = loss + SLIP * elsewhere_loss.topk(len(elsewhere_loss) // HARDEST).values.mean() + DECAY * row.pow(2).sum()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
    with torch.no_grad():
        output[tok.special[corpus.UNSURE]] = row
        return (states @ row > best).float().mean().item()
