"""Trains the guide: train.py [--threads N] [--device D] [--from CHECKPOINT] [--out CHECKPOINT].

What is hard is to find the right answers; saying them is learnt by heart. First the teachers (bag.py) learn to place questions, and
the last layer of the network does, alone, which is cheap: it pools the words, and their vectors become what they are for that.
Then the whole network learns what all of these say together, also of questions that no wording has, which answers come
next if the first is not meant, and the chats and answers; then all of it after other turns too. At last it learns from
wordings set aside when to be unsure.
Python's, NumPy's and PyTorch's seeds are fixed: on a processor the same program gives the same guide.
"""
import argparse
import ctypes
import functools
import itertools
import multiprocessing
import os
import time
import typing

import numpy as np
import torch
import torch.nn.functional as F

import bag
import corpus
import doubt
import network
import questions
import subwords
import tokenizer

SEED = 5
N_DRAWERS = 8  # processes that draw chats; another number draws others
N_VOCAB = 16000  # nearly all words of the wordings are one piece
BATCH = 768  # questions
CHAT_TOKENS = 4096  # of a batch of chats: every token of an answer has a score for every piece
NOTHING = -1
ROW_LENGTHS = (16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 512, 768, 1024, 1536, 2048)
LONG_CHAT_EVERY = 60  # batches of chats
WARM_UP = 100  # steps
WEIGHT_DECAY = 0.05
REPORT_EVERY = 500  # steps
N_BAGS, BAGS_SHARE = 4, 0.7  # the rest of what the teachers say is the network's after the first phase
GIVEN = 16  # topics that the teachers give of every question
EARLIER_TURNS = (1, 1, 1, 2, 2, 2, 3, 3, 3, 9)
EARLIER_STRANGE, LONGEST_EARLIER = 0.1, 100  # share of these that end with a strange question; its characters
EARLIER_TOKENS = 16  # of turns before a batch: for so many it has a half, for twice as many a third of its questions
STRANGE_LISTS = 0.2  # share of the strange questions that a list comes after
SURE = 0.8  # lists are learnt from questions of which no topic is as likely


class Phase(typing.NamedTuple):
    steps: int
    rate: float     # of learning: rises while warming up, stays, and falls linearly over the last steps
    falls: float    # for this share of the steps
    first: int      # the layers before this one are passed over
    dropout: float
    cycle: tuple    # what the steps learn, in turn
    earlier: float  # share of the batches of questions, and of lists and recitals, that come after other turns


PHASES = (Phase(1500, 3e-3, 0.75, network.CONFIG["n_layer"] - 1, 0.12, ("known",), 0.0),
          Phase(5000, 2e-3, 0.75, 0, 0.0, ("taught", "lists", "taught", "chats"), 0.0),
          Phase(2300, 1e-3, 1.0, 0, 0.0, ("taught", "chats", "lists", "chats"), 0.3))


# ---- questions ----

class Teaching:
    """The questions as the network reads them, and what the teachers say of each: topics [rows, GIVEN] and how likely they are.
    topics: names of the tokens. lists [LIST, topics]: at each place of a list."""

    def __init__(self, asked, tok, topics, device):
        self.asked, self.device = asked, device
        self.lists = torch.tensor([[tok.special[corpus.listed(topic, place)] for topic in topics] for place in range(corpus.LIST)], device=device)
        self.topics, self.unsure = self.lists[0], tok.special[corpus.UNSURE]
        self.before, self.after = np.array(tok.encode_chat(corpus.BEFORE_QUESTION)), np.array(tok.encode_chat(corpus.AFTER_QUESTION))
        self.numbers = np.array([tok.encode(number(place)) for place in range(corpus.LIST)])
        self.rng = np.random.default_rng(SEED)
        self.earlier = None  # a function that draws the ids of turns before a batch of questions
        self.known = torch.from_numpy(asked.topics).to(device)
        self.given, self.shares = None, None

    def read(self, rows, after=(), earlier=()):
        ids, ends = self.asked.padded(rows, np.concatenate((np.array(earlier, dtype=np.int64), self.before)),
                                      np.concatenate((self.after, np.array(after, dtype=np.int64))))
        return self.tensor(ids), self.tensor(ends)

    def states(self, weights, ids, places, first, dropout=0.0):
        """After the tokens there. places [rows, n], ascending."""
        wanted = torch.zeros_like(ids, dtype=torch.bool).scatter_(1, places, True)
        return network.hidden(weights, network.CONFIG, ids, wanted, dropout, first=first).view(*places.shape, -1)

    def scores(self, weights, rows, first, dropout=0.0):
        """Of all topics, after each question."""
        ids, ends = self.read(rows)
        with torch.autocast(self.device.type, torch.bfloat16):
            return network.logits(weights, self.states(weights, ids, ends[:, None], first, dropout)[:, 0], self.topics).float()

    def known_loss(self, weights, rows, phase):
        """Of the topics of the wordings."""
        return F.cross_entropy(self.scores(weights, rows, phase.first, phase.dropout), self.known[self.tensor(rows % self.asked.n)])

    def draw_list(self, rows, rng):
        """For each row the places in `given` of a list of topics, drawn one after the other, as likely as the teachers say."""
        likely = self.shares[rows].clip(1e-6)
        return np.argsort(-(np.log(likely) + rng.gumbel(size=likely.shape)), 1)[:, :corpus.LIST]

    def later(self, rows):
        """(rows, ids of the turns before them): in some batches the questions are not the first of their chat, and fewer."""
        earlier = self.earlier()
        return rows[::1 + len(earlier) // EARLIER_TOKENS], earlier

    def taught_loss(self, weights, rows, phase):
        """Of what the teachers say, and no other piece may come."""
        rows, earlier = self.later(rows)
        ids, ends = self.read(rows, earlier=earlier)
        with torch.autocast(self.device.type, torch.bfloat16):
            states = self.states(weights, ids, ends[:, None], phase.first, phase.dropout)
            scores = network.logits(weights, states, self.topics).float()
        said = said_of(scores, self.tensor(self.given[rows].astype(np.int64))[:, None], self.tensor(self.shares[rows])[:, None])
        return self.others(weights, states, scores) - said.mean()

    def lists_loss(self, weights, rows, phase):
        """Of what the teachers say after UNSURE and after each topic of a list but the last, where those before cannot be meant; and
        of the topic whose number comes after the list. No other piece may come at these places."""
        n = corpus.LIST
        rows, earlier = self.later(rows)
        drawn, given, likely = self.draw_list(rows, self.rng), self.given[rows].astype(np.int64), self.shares[rows].clip(1e-6)
        place = self.rng.integers(n, size=len(rows))
        ids, ends = self.read(rows, [self.unsure] * (1 + n + self.numbers.shape[1]), earlier)
        told = self.tensor(np.take_along_axis(given, drawn, 1))
        after = torch.cat((self.lists[torch.arange(n, device=self.device), told], self.tensor(self.numbers[place])), 1)
        ids.scatter_(1, ends[:, None] + torch.arange(1 - after.shape[1], 1, device=self.device), after)
        places = ends[:, None] - after.shape[1] + self.tensor(np.array([*range(n), after.shape[1]]))

        wanted = np.repeat(likely[:, None], n + 1, 1)
        for i in range(n - 1):
            np.put_along_axis(wanted[:, i + 1:], np.repeat(drawn[:, None, i:i + 1], n - i, 1), 0.0, 2)
        wanted[:, -1] = np.arange(GIVEN) == drawn[np.arange(len(rows)), place][:, None]
        wanted = self.tensor(wanted / wanted.sum(2, keepdims=True)).float()

        with torch.autocast(self.device.type, torch.bfloat16):
            states = self.states(weights, ids, places, phase.first, phase.dropout)
            pieces = [*self.lists, self.topics]
            scores = torch.stack([network.logits(weights, states[:, i], pieces[i]).float() for i in range(n + 1)], 1)
        said = said_of(scores, self.tensor(given)[:, None].expand(-1, n + 1, -1), wanted).mean(0)
        return self.others(weights, states, scores) - said[:-1].mean() - said[-1]

    def others(self, weights, states, scores):
        """How much more likely any piece is than one of those that have scores; of some rows."""
        with torch.autocast(self.device.type, torch.bfloat16):
            of_all = network.logits(weights, states[::6]).float()
        of_all[:, :, self.unsure] = float("-inf")
        return (of_all.logsumexp(2) - scores[::6].logsumexp(2)).mean()

    def tensor(self, array):
        return torch.from_numpy(array).to(self.device)

    @torch.no_grad()
    def ask_teachers(self, bags, all_rows, weights, first):
        self.given = np.zeros((len(self.asked.lengths), GIVEN), dtype=np.int16)
        self.shares = np.zeros((len(self.asked.lengths), GIVEN), dtype=np.float32)
        order = np.argsort(self.asked.lengths, kind="stable")
        for start in range(0, len(order), 2048):
            rows = order[start:start + 2048]
            said = (1 - BAGS_SHARE) * self.scores(weights, rows, first).softmax(1)
            for teacher in bags:
                said += BAGS_SHARE / len(bags) * teacher.scores(all_rows, self.tensor(rows)).softmax(1)
            shares, given = said.topk(GIVEN, 1)
            self.given[rows], self.shares[rows] = given.cpu().numpy(), (shares / shares.sum(1, keepdim=True)).cpu().numpy()
        for i, kind in enumerate(questions.ROUNDS):
            if kind == questions.MISTYPED:  # two letters that changed places change nothing that is meant
                rows = slice(i * self.asked.n, (i + 1) * self.asked.n)
                self.given[rows], self.shares[rows] = self.given[:self.asked.n], self.shares[:self.asked.n]


def said_of(scores, given, likely):
    """How well the scores [rows, places, topics] say what is given [rows, places, GIVEN], and how likely."""
    return (likely * scores.log_softmax(2).gather(2, given)).sum(2)


# ---- chats ----

def encode_chat(tok, system, chat, answered=True):
    """One chat, [(question, fact)], as ids and what the network must predict after each (NOTHING: is not asked). After every
    question it is the topic; of the last one, if answered, the answer too. What the program renders of earlier answers
    has neither topic nor slots, so these have none here. system: a system prompt or None."""
    ids = tok.encode_chat(corpus.render_system(system)) if system else []
    targets = [NOTHING] * len(ids)
    for i, (question, fact) in enumerate(chat):
        asked = corpus.encode_question(tok, question)
        topic, end = tok.special[fact.topic], [tok.special["<|im_end|>"]]
        ids += asked
        targets += [NOTHING] * (len(asked) - 1) + [topic]
        if i < len(chat) - 1:
            ids += tok.encode(fact.said) + end
            targets += [NOTHING] * (len(ids) - len(targets))
        elif answered:
            said = corpus.encode_answer(tok, fact)
            ids += [topic] + said
            targets += said + end
    return ids, targets


def draw_earlier(maker, tok, share):
    """Ids of the turns before a question, or, but for a share, none; of an answer only a beginning, so that there is room for more questions."""
    ids = []
    if share and maker.rng.random() < share:
        turns = maker.turns(maker.rng.choice(EARLIER_TURNS))
        if maker.rng.random() < EARLIER_STRANGE:
            question, fact = maker.strange.question()
            turns.append((question[:LONGEST_EARLIER], fact))
        for question, fact in turns:
            said = tok.encode(fact.said)
            ids += corpus.encode_question(tok, question) + said[:maker.rng.randint(1, len(said))] + [tok.special["<|im_end|>"]]
    return ids


def number(place):
    return "\n%d. " % (place + 1)


def begin_lists(weights, lists):
    """No topic shall come twice in a list, so each, once read, speaks against itself; those after the first say their place."""
    embeddings, output = weights["token_embd.weight"], weights["output.weight"]
    with torch.no_grad():
        topics = output[lists[0]]
        for place, tokens in enumerate(lists):
            says_place = torch.randn(topics.shape[1], device=topics.device)
            embeddings[tokens] = -5 * topics + says_place * 5 * topics.norm(dim=1).mean() / says_place.norm() * (place > 0)
            output[tokens] = topics


def encode_list(tok, maker, teaching, rng):
    """Of a question that the guide is unsure of, as encode_listed."""
    row = rng.integers(0, len(teaching.asked.lengths), 1)
    facts = [maker.facts[maker.names[i]] for i in teaching.given[row[0]][teaching.draw_list(row, rng)[0]]]
    return encode_listed(tok, teaching.asked.padded(row, teaching.before, teaching.after)[0][0].tolist(), facts)


def encode_strange(tok, maker):
    """A question that no wording foresees, and its answer; now and then a list with it."""
    question, fact = maker.strange.question()
    if maker.rng.random() >= STRANGE_LISTS:
        return encode_chat(tok, None, [(question, fact)])
    facts = [fact] + maker.rng.sample(maker.strange.others(fact), corpus.LIST - 1)
    return encode_listed(tok, corpus.encode_question(tok, question), facts)


def encode_listed(tok, ids, facts):
    """After a question: UNSURE, a list of topics, and their answers, each after its number and topic."""
    ids = ids + [tok.special[corpus.UNSURE]]
    said = [tok.special[corpus.listed(fact.topic, place)] for place, fact in enumerate(facts)] + tok.encode(corpus.LEAD)
    for place, fact in enumerate(facts):
        said += tok.encode(number(place)) + [tok.special[fact.topic]] + corpus.encode_answer(tok, fact)
    return ids + said, [NOTHING] * (len(ids) - 1) + said + [tok.special["<|im_end|>"]]


def draw_chat(maker, tok, teaching, rng, share):
    draw = maker.rng.random()
    if draw < 0.16:
        return encode_chat(tok, maker.system(), maker.turns(2), False)
    if draw >= 0.94:
        return encode_chat(tok, maker.system(), maker.chat(6))
    earlier = draw_earlier(maker, tok, share)
    if draw < 0.46:
        ids, targets = encode_list(tok, maker, teaching, rng)
    elif draw < 0.52:
        ids, targets = encode_strange(tok, maker)
    else:
        ids, targets = encode_chat(tok, None if earlier else maker.system(), maker.recital())
    return earlier + ids, [NOTHING] * len(earlier) + targets


def chats(seed, tok, teaching, share):
    """Batches (ids, targets) of chats of about equal length; now and then one chat that fills the whole context."""
    maker, rng, waiting = corpus.Maker(seed), np.random.default_rng(seed), {length: [] for length in ROW_LENGTHS}
    count = 0
    while True:
        ids, targets = draw_chat(maker, tok, teaching, rng, share)
        length = next((n for n in ROW_LENGTHS if n >= len(ids)), ROW_LENGTHS[-1])
        waiting[length].append((ids[:length], targets[:length]))
        if len(waiting[length]) == CHAT_TOKENS // length:
            yield padded(waiting[length], length)
            waiting[length] = []
            count += 1
            if count % LONG_CHAT_EVERY == 0:
                yield padded([long_chat(maker, tok)], network.CONFIG["n_context"])


def long_chat(maker, tok):
    """A chat that fills the whole context."""
    ids, targets = [], []
    while len(ids) < network.CONFIG["n_context"]:
        more_ids, more_targets = encode_chat(tok, maker.system(), maker.chat(8), False)
        ids, targets = ids + more_ids, targets + more_targets
    return ids[:network.CONFIG["n_context"]], targets[:network.CONFIG["n_context"]]


def padded(rows, length):
    ids = np.zeros((len(rows), length), dtype=np.int64)
    targets = np.full((len(rows), length), NOTHING)
    for i, (row, wanted) in enumerate(rows):
        ids[i, :len(row)], targets[i, :len(row)] = row, wanted
    return ids, targets


def draw(queue, *how):
    for batch in chats(*how):
        queue.put(batch)


def drawn_chats(n_phase, share, tok, teaching):
    """Batches of chats, the same ones every time, on the device: drawing takes longer than learning, so processes do it, which end with
    this generator. share: of the lists and recitals that come after other turns."""
    context = multiprocessing.get_context("fork")
    queues = [context.Queue(4) for _ in range(N_DRAWERS)]
    processes = [context.Process(target=draw, args=(queue, SEED + 1 + n_phase * N_DRAWERS + i, tok, teaching, share), daemon=True)
                 for i, queue in enumerate(queues)]
    for process in processes:
        process.start()
    try:
        for queue in itertools.cycle(queues):
            yield to_device(queue.get(), teaching.device)
    finally:
        for process in processes:
            process.terminate()


def to_device(arrays, device):
    return [torch.from_numpy(array).to(device) for array in arrays]


def chat_loss(weights, ids, targets, first=0, dropout=0.0):
    """The mean over the topics that are asked and that over the pieces of answers: these are many and easy. first: of the layers."""
    wanted = targets != NOTHING
    with torch.autocast(ids.device.type, torch.bfloat16):
        scores = network.logits(weights, network.hidden(weights, network.CONFIG, ids, wanted, dropout, first=first))
    losses, topics = F.cross_entropy(scores.float(), targets[wanted], reduction="none"), targets[wanted] >= N_VOCAB
    return sum(losses[some].mean() for some in (topics, ~topics) if some.any())


def held_out_batches(tok, device):
    """All held-out questions with the topics of their answers, about equally long ones together."""
    held_out = [encode_chat(tok, None, before + [(question, meant[0])], False) for meant, before, question in corpus.held_out_questions()]
    held_out.sort(key=lambda chat: len(chat[0]))
    groups = [held_out[i:i + 256] for i in range(0, len(held_out), 256)]
    return [to_device(padded(group, len(group[-1][0])), device) for group in groups]


@torch.no_grad()
def held_out_loss(weights, groups, first):
    counts = [(targets != NOTHING).sum().item() for _, targets in groups]
    return sum(chat_loss(weights, *group, first).item() * n for group, n in zip(groups, counts)) / sum(counts)


# ---- training ----

def learn_vocabulary(maker):
    """From the wordings as they stand, and every answer ten times."""
    texts = ["user", "assistant", "system"] * 10000
    for name, wordings in maker.plain.items():
        texts += [corpus.expand(wording, maker.lists, maker.rng) for wording in wordings] + [maker.facts[name].said] * 10
    listed = [corpus.listed(maker.facts[name].topic, place) for place in range(1, corpus.LIST) for name in maker.names]
    slots = [corpus.slot(name) for name in corpus.slots_of(maker.facts.values())]
    return tokenizer.train(texts, N_VOCAB, slots, sorted({fact.topic for fact in maker.facts.values()}) + [corpus.UNSURE] + listed)


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


def train(phase, weights, words, loss_of, report):
    """loss_of(what the step learns, weights applied). report(step, mean loss of what the cycle begins with) is called now and then and at the end."""
    optimiser, average = optimiser_of(weights), None
    for step in range(1, phase.steps + 1):
        for group in optimiser.param_groups:
            group["lr"] = phase.rate * min(1, step / WARM_UP, (phase.steps - step + 1) / (phase.steps * phase.falls))
        learnt = phase.cycle[step % len(phase.cycle)]
        loss = loss_of(learnt, words.applied(weights))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if learnt == phase.cycle[0]:
            average = loss.item() if average is None else 0.98 * average + 0.02 * loss.item()
        if step % REPORT_EVERY == 0 or step == phase.steps:
            report(step, average)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=2, help="another number rounds otherwise")
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options.add_argument("--from", dest="checkpoint", help="a checkpoint of an earlier training, which this one goes on from")
    options.add_argument("--out", default="/tmp/guide-checkpoint.pt")
    o = options.parse_args()
    start, device = time.time(), torch.device(o.device)
    keep_memory()
    torch.set_num_threads(o.threads)
    torch.manual_seed(SEED)

    def say(text):
        print("%5.0f s  %s" % (time.time() - start, text), flush=True)

    maker = corpus.Maker(SEED)
    vocabulary = learn_vocabulary(maker)
    tok = tokenizer.Tokenizer(vocabulary)
    say("%d pieces" % len(vocabulary["pieces"]))
    asked = questions.Questions(maker, tok, SEED)
    say("%d questions with %d features" % (len(asked.lengths), asked.n_features))
    teaching = Teaching(asked, tok, [maker.facts[name].topic for name in maker.names], device)
    all_rows, bags = bag.Rows(asked.bags, device), []
    for _ in range(N_BAGS):
        bags.append(bag.Bag(asked.n_features, len(maker.names), device))
        bags[-1].train(all_rows, teaching.known, questions.N_KNOWN)
        say("a teacher")
    words = subwords.Subwords(vocabulary["pieces"], device)
    weights = network.initial(network.CONFIG, len(vocabulary["pieces"]))
    weights[subwords.NAME] = words.initial(network.CONFIG["n_embd"])
    weights = {name: weight.to(device).requires_grad_() for name, weight in weights.items()}
    say("%d parameters" % sum(w.numel() for w in weights.values()))
    history, held_out, done = [], held_out_batches(tok, device), 0
    drawn = None
    batches = {"known": asked.batches(lambda: asked.some_of_all(questions.N_KNOWN, teaching.rng), BATCH, teaching.rng),
               "taught": asked.batches(lambda: asked.some_of_all(len(questions.ROUNDS), teaching.rng), BATCH, teaching.rng),
               "lists": asked.batches(lambda: teaching.rng.permutation(np.flatnonzero(teaching.shares[:, 0] < SURE)), BATCH // 2, teaching.rng)}

    def learn(phase):
        nonlocal done, drawn
        teaching.earlier = functools.partial(draw_earlier, maker, tok, phase.earlier)
        drawn = drawn_chats(PHASES.index(phase), phase.earlier, tok, teaching)

        def loss_of(learnt, applied):
            if learnt == "chats":
                return chat_loss(applied, *next(drawn), phase.first, phase.dropout)
            return getattr(teaching, learnt + "_loss")(applied, next(batches[learnt]), phase)

        def report(step, average):
            history.append((done + step, average, held_out_loss(words.applied(weights), held_out, phase.first)))
            say("step %d  loss %.4f  held out %.4f" % history[-1])
            save(o.out, weights, vocabulary, done + step, history)

        train(phase, weights, words, loss_of, report)
        done += phase.steps

    if o.checkpoint:
        go_on_from(torch.load(o.checkpoint, map_location=device), weights, vocabulary, words)
        teaching.ask_teachers(bags, all_rows, words.applied(weights), 0)
    else:
        learn(PHASES[0])
        teaching.ask_teachers(bags, all_rows, words.applied(weights), PHASES[0].first)
        begin_lists(weights, teaching.lists)
    say("the teachers have been asked")
    for phase in PHASES[1:]:
        learn(phase)
    share = doubt.learn(words.applied(weights), weights["output.weight"], tok, drawn, teaching.after[-1])
    say("unsure of %.1f %% of the questions set aside" % (100 * share))
    save(o.out, weights, vocabulary, done, history)


@torch.no_grad()
def go_on_from(checkpoint, weights, vocabulary, words):
    """Takes what was learnt there: of pieces and their parts by their names, so that facts may have come and gone."""
    there = checkpoint["vocabulary"]["pieces"], subwords.Subwords(checkpoint["vocabulary"]["pieces"]).names
    here = vocabulary["pieces"], words.names
    pieces, parts = (rows_of_same_name(*names) for names in zip(here, there))
    rows = {"token_embd.weight": pieces, "output.weight": pieces, subwords.NAME: parts}
    for name, weight in weights.items():
        to, of = rows.get(name, (..., ...))
        weight[to] = checkpoint["weights"][name][of]


def rows_of_same_name(here, there):
    """Their places here, and there."""
    places = {name: i for i, name in enumerate(there)}
    return [i for i, name in enumerate(here) if name in places], [places[name] for name in here if name in places]


def save(path, weights, vocabulary, step, history):
    torch.save({"config": network.CONFIG, "weights": {n: w.detach().cpu() for n, w in weights.items()}, "vocabulary": vocabulary,
                "step": step, "history": history}, path + ".part")
    os.replace(path + ".part", path)


if __name__ == "__main__":
    main()
