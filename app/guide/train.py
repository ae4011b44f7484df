"""Trains the guide: train.py [--threads N] [--out CHECKPOINT].

Chats are drawn anew for every batch; the loss counts the topics, and of some chats the last answer. At first the last layer
learns alone, which is cheap: it pools the words of single questions, and the vectors of the words become what they are
for that. Then the layers before it join, with whole chats and with answers to be learnt by heart. Python's and PyTorch's
seeds are fixed: the same program gives the same guide.
"""
import argparse
import ctypes
import os
import time
import typing

import torch
import torch.nn.functional as F

import corpus
import network
import subwords
import tokenizer

SEED = 5
N_VOCAB = 16000  # nearly all words of the wordings are one piece
BATCH_TOKENS = 12288
LONG, LONG_BATCH_TOKENS = 40, 4096  # of chats this long, most of them with an answer: every token of it has a score for every piece
NOTHING = -1
ROW_LENGTHS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 32, 36, 40, 48, 64, 96, 128, 192, 256, 384, 512)
LONG_CHAT_EVERY = 4000
WARM_UP = 100  # steps
WEIGHT_DECAY = 0.05
DROPOUT = 0.12
REPORT_EVERY = 250  # steps


class Phase(typing.NamedTuple):
    steps: int
    rate: float    # of learning: rises while warming up, stays, and falls linearly over the last steps
    falls: float   # for this share of the steps
    first: int     # the layers before this one are passed over
    single: float  # share of the chats that are one question without its answer
    pairs: float   # and two


PHASES = (Phase(1500, 3e-3, 0.75, network.CONFIG["n_layer"] - 1, 1.0, 0.0),
          Phase(3600, 1.5e-3, 0.85, 0, 0.8, 0.07))


def encode_chat(tok, system, chat, answered=True):
    """One chat, [(question, fact)], as ids and what the network must predict after each (NOTHING: is not asked). After every
    question it is the topic; of the last one, if answered, the answer too. What the program renders of earlier answers
    has no topic, so these have none here. system: a system prompt or None."""
    ids = tok.encode_chat(corpus.render_system(system)) if system else []
    targets = [NOTHING] * len(ids)
    for i, (question, fact) in enumerate(chat):
        asked = tok.encode_chat("<|im_start|>user\n") + tok.encode(question) + tok.encode_chat("<|im_end|><|im_start|>assistant\n")
        topic, said = tok.special[fact.topic], tok.encode(fact.answer) + [tok.special["<|im_end|>"]]
        ids += asked
        targets += [NOTHING] * (len(asked) - 1) + [topic]
        if i < len(chat) - 1:
            ids += said
            targets += [NOTHING] * (len(ids) - len(targets))
        elif answered:
            ids += [topic] + said[:-1]
            targets += said
    return ids, targets


def draw_chat(maker, tok, phase):
    """Most chats end with their topic: what is hard is to find the right answer, saying it is learnt by heart."""
    draw = maker.rng.random()
    if draw < phase.single:
        return encode_chat(tok, maker.system(), maker.turns(1), False)
    if draw < phase.single + phase.pairs:
        return encode_chat(tok, maker.system(), maker.turns(2), False)
    return encode_chat(tok, maker.system(), maker.recital() if maker.rng.random() < 0.7 else maker.chat(6))


def batches(maker, tok, phase):
    """Batches (ids, targets) of chats of about equal length, in few shapes; now and then one chat that fills the whole context."""
    waiting = {length: [] for length in ROW_LENGTHS}
    drawn = 0
    while True:
        ids, targets = draw_chat(maker, tok, phase)
        length = next((n for n in ROW_LENGTHS if n >= len(ids)), ROW_LENGTHS[-1])
        waiting[length].append((ids[:length], targets[:length]))
        if len(waiting[length]) == (BATCH_TOKENS if length < LONG else LONG_BATCH_TOKENS) // length:
            yield tensors(waiting[length], length)
            waiting[length] = []
        drawn += 1
        if phase.first == 0 and drawn % LONG_CHAT_EVERY == 0:
            yield tensors([long_chat(maker, tok)], network.CONFIG["n_context"])


def long_chat(maker, tok):
    """A chat that fills the whole context."""
    ids, targets = [], []
    while len(ids) < network.CONFIG["n_context"]:
        more_ids, more_targets = encode_chat(tok, maker.system(), maker.chat(8), False)
        ids, targets = ids + more_ids, targets + more_targets
    return ids[:network.CONFIG["n_context"]], targets[:network.CONFIG["n_context"]]


def tensors(chats, length):
    ids = torch.zeros(len(chats), length, dtype=torch.long)
    targets = torch.full((len(chats), length), NOTHING)
    for i, (chat, wanted) in enumerate(chats):
        ids[i, :len(chat)] = torch.tensor(chat)
        targets[i, :len(chat)] = torch.tensor(wanted)
    return ids, targets


def loss_of(weights, ids, targets, first, dropout=0.0):
    """The mean over what is asked. first: of the layers."""
    wanted = targets != NOTHING
    with torch.autocast("cpu", torch.bfloat16):
        scores = network.logits(weights, network.hidden(weights, network.CONFIG, ids, wanted, dropout, first=first))
    return F.cross_entropy(scores.float(), targets[wanted])


def held_out_batches(tok):
    """All held-out questions with the topics of their answers, about equally long ones together."""
    chats = [encode_chat(tok, None, before + [(question, fact)], False) for fact, before, question in corpus.held_out_questions()]
    chats.sort(key=lambda chat: len(chat[0]))
    groups = [chats[i:i + 64] for i in range(0, len(chats), 64)]
    return [tensors(group, len(group[-1][0])) for group in groups]


@torch.no_grad()
def held_out_loss(weights, groups, first):
    counts = [(targets != NOTHING).sum().item() for _, targets in groups]
    return sum(loss_of(weights, *group, first).item() * n for group, n in zip(groups, counts)) / sum(counts)


def learn_vocabulary(maker):
    """From the wordings as they stand, and every answer ten times."""
    texts = ["user", "assistant", "system"] * 10000
    for name, wordings in maker.plain.items():
        texts += [corpus.expand(wording, maker.lists, maker.rng) for wording in wordings] + [maker.facts[name].answer] * 10
    return tokenizer.train(texts, N_VOCAB, sorted({fact.topic for fact in maker.facts.values()}))


def keep_memory():
    """Has the C library keep freed memory: giving it back and faulting it in again takes longer than the arithmetic."""
    m_trim_threshold, m_top_pad, m_mmap_max = -1, -2, -4
    library = ctypes.CDLL(None)
    library.mallopt(m_mmap_max, 0)
    library.mallopt(m_trim_threshold, 2**31 - 1)
    library.mallopt(m_top_pad, 2**28)


def optimiser_of(weights):
    matrices = [w for w in weights.values() if w.dim() > 1]
    vectors = [w for w in weights.values() if w.dim() == 1]
    return torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}], betas=(0.9, 0.95))


def train(phase, weights, words, maker, tok, report):
    """report(steps, tokens, seconds of processor, mean loss), all of this phase, is called now and then and at the end."""
    optimiser, drawn = optimiser_of(weights), batches(maker, tok, phase)
    tokens, busy, average = 0, 0.0, None
    for step in range(1, phase.steps + 1):
        ids, targets = next(drawn)
        for group in optimiser.param_groups:
            group["lr"] = phase.rate * min(1, step / WARM_UP, (phase.steps - step + 1) / (phase.steps * phase.falls))
        start = time.process_time()
        loss = loss_of(words.applied(weights), ids, targets, phase.first, DROPOUT)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        busy += time.process_time() - start
        tokens += ids.numel()
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % REPORT_EVERY == 0 or step == phase.steps:
            report(step, tokens, busy, average)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--out", default="/tmp/guide-checkpoint.pt")
    o = options.parse_args()
    keep_memory()
    torch.set_num_threads(o.threads)
    torch.manual_seed(SEED)
    maker = corpus.Maker(SEED)
    vocabulary = learn_vocabulary(maker)
    tok = tokenizer.Tokenizer(vocabulary)
    weights, words = network.initial(network.CONFIG, len(vocabulary["pieces"])), subwords.Subwords(vocabulary["pieces"])
    weights[subwords.NAME] = words.initial(network.CONFIG["n_embd"])
    history, held_out = [], held_out_batches(tok)
    print("%d parameters, %d pieces" % (sum(w.numel() for w in weights.values()), len(vocabulary["pieces"])), flush=True)
    done = 0
    for phase in PHASES:
        def report(step, tokens, busy, average):
            history.append((done + step, average, held_out_loss(words.applied(weights), held_out, phase.first)))
            print("step %d  %.0f s of processor  %.1f M tokens  %.0f tokens/s  loss %.4f  held out %.4f" % (
                done + step, busy, tokens / 1e6, tokens / busy, *history[-1][1:]), flush=True)
            save(o.out, weights, vocabulary, done + step, history)

        train(phase, weights, words, maker, tok, report)
        done += phase.steps


def save(path, weights, vocabulary, step, history):
    torch.save({"config": network.CONFIG, "weights": {n: w.detach() for n, w in weights.items()}, "vocabulary": vocabulary,
                "step": step, "history": history}, path + ".part")
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
