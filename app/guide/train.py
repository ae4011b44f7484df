"""Trains the guide: train.py [--steps N] [--decay N] [--resume CHECKPOINT] [--out CHECKPOINT].

Chats are drawn anew for every batch; the loss counts the topics, and of some chats the last answer. The learning rate
warms up, stays, and falls linearly over the last steps; so a run may be stopped and resumed with another end. Python's and PyTorch's seeds are fixed: the same steps from the start give the same guide.
"""
import argparse
import ctypes
import os
import time

import torch
import torch.nn.functional as F

import corpus
import network
import subwords
import tokenizer

SEED = 5
N_VOCAB = 16000  # nearly all words of the wordings are one piece
BATCH_TOKENS = 12288
SINGLE, PAIRS = 0.8, 0.07  # shares of the chats that are one question without its answer, and two
NOTHING = -1
ROW_LENGTHS = (8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 22, 24, 26, 28, 30, 32, 36, 40, 48, 64, 96, 128, 192, 256, 384, 512)
LONG_CHAT_EVERY = 4000
RATE = 2e-3
WARM_UP = 100  # steps
WEIGHT_DECAY = 0.05
DROPOUT = 0.12
REPORT_EVERY = 250  # steps


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


def draw_chat(maker, tok):
    """Most chats end with their topic: what is hard is to find the right answer, saying it is learnt by heart."""
    draw = maker.rng.random()
    if draw < SINGLE:
        return encode_chat(tok, maker.system(), maker.turns(1), False)
    if draw < SINGLE + PAIRS:
        return encode_chat(tok, maker.system(), maker.turns(2), False)
    return encode_chat(tok, maker.system(), maker.recital() if maker.rng.random() < 0.7 else maker.chat(6))


def batches(maker, tok):
    """Batches (ids, targets) of chats of about equal length, in few shapes; now and then one chat that fills the whole context."""
    waiting = {length: [] for length in ROW_LENGTHS}
    drawn = 0
    while True:
        ids, targets = draw_chat(maker, tok)
        length = next((n for n in ROW_LENGTHS if n >= len(ids)), ROW_LENGTHS[-1])
        waiting[length].append((ids[:length], targets[:length]))
        if len(waiting[length]) == BATCH_TOKENS // length:
            yield tensors(waiting[length], length)
            waiting[length] = []
        drawn += 1
        if drawn % LONG_CHAT_EVERY == 0:
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


def loss_of(weights, ids, targets, dropout=0.0):
    wanted = targets != NOTHING
    with torch.autocast("cpu", torch.bfloat16):
        scores = network.logits(weights, network.hidden(weights, network.CONFIG, ids, wanted, dropout))
    return F.cross_entropy(scores.float(), targets[wanted])


def held_out_batches(tok):
    """All held-out questions with the topics of their answers, about equally long ones together."""
    chats = [encode_chat(tok, None, before + [(question, fact)], False) for fact, before, question in corpus.held_out_questions()]
    chats.sort(key=lambda chat: len(chat[0]))
    groups = [chats[i:i + 64] for i in range(0, len(chats), 64)]
    return [tensors(group, len(group[-1][0])) for group in groups]


@torch.no_grad()
def held_out_loss(weights, groups):
    counts = [(targets != NOTHING).sum().item() for _, targets in groups]
    return sum(loss_of(weights, *group).item() * n for group, n in zip(groups, counts)) / sum(counts)


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


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=3000)
    options.add_argument("--decay", type=int, default=2400, help="steps at the end over which the learning rate falls")
    options.add_argument("--resume", help="go on from this checkpoint")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--out", default="/tmp/guide-checkpoint.pt")
    o = options.parse_args()
    keep_memory()
    torch.set_num_threads(o.threads)
    resumed = torch.load(o.resume) if o.resume else None
    step = resumed["step"] if resumed else 0
    torch.manual_seed(SEED + step)
    maker = corpus.Maker(SEED + step)
    vocabulary = resumed["vocabulary"] if resumed else learn_vocabulary(maker)
    tok = tokenizer.Tokenizer(vocabulary)
    weights, words = network.initial(network.CONFIG, len(vocabulary["pieces"])), subwords.Subwords(vocabulary["pieces"])
    weights[subwords.NAME] = words.initial(network.CONFIG["n_embd"])
    matrices = [w for w in weights.values() if w.dim() > 1]
    vectors = [w for w in weights.values() if w.dim() == 1]
    optimiser = torch.optim.AdamW([{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}], betas=(0.9, 0.95))
    if resumed:
        optimiser.load_state_dict(resumed["optimiser"])
        with torch.no_grad():
            for name, weight in weights.items():
                weight.copy_(resumed["weights"][name])
    history, held_out = resumed["history"] if resumed else [], held_out_batches(tok)
    print("%d parameters, %d pieces, from step %d: held out %.4f" % (
        sum(w.numel() for w in weights.values()), len(vocabulary["pieces"]), step, held_out_loss(words.applied(weights), held_out)), flush=True)
    tokens, busy, average = 0, 0.0, None
    for ids, targets in batches(maker, tok):
        if step >= o.steps:
            break
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP, (o.steps - step) / o.decay)
        start = time.process_time()
        loss = loss_of(words.applied(weights), ids, targets, DROPOUT)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        busy += time.process_time() - start
        step += 1
        tokens += ids.numel()
        average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % REPORT_EVERY == 0 or step == o.steps:
            history.append((step, average, held_out_loss(words.applied(weights), held_out)))
            print("step %d  %.0f s of processor  %.1f M tokens  %.0f tokens/s  loss %.4f  held out %.4f" % (
                step, busy, tokens / 1e6, tokens / busy, *history[-1][1:]), flush=True)
            save(o.out, weights, optimiser, vocabulary, step, history)


def save(path, weights, optimiser, vocabulary, step, history):
    torch.save({"config": network.CONFIG, "weights": {n: w.detach() for n, w in weights.items()}, "vocabulary": vocabulary,
                "optimiser": optimiser.state_dict(), "step": step, "history": history}, path + ".part")
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
