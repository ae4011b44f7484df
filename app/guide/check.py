"""Scores guide.gguf on the held-out wordings: check.py [FILE.gguf] [--temperature T] [--show].

An answer is right when it says all that its fact asks for (the lines `!` of the corpus) and nothing it must not say
(`~`). It is true when each of its sentences stands in the corpus, where all of them are true; sentences that are true
only as an answer to their own question ("It was Ctrl+P.", "No, …") count only there. The sampling is the program's default (repeat, top-p, top-k and min-p from its table), at temperature 0 unless
another one is given.
"""
import argparse
import os
import re

import torch

import corpus
import gguf
import network
import tokenizer

LONGEST = 120  # tokens of an answer


def load_model(path):
    keys, tensors = gguf.read(path)
    config = {
        "n_embd": keys["llama.embedding_length"],
        "n_layer": keys["llama.block_count"],
        "n_head": keys["llama.attention.head_count"],
        "n_head_kv": keys["llama.attention.head_count_kv"],
        "n_ff": keys["llama.feed_forward_length"],
        "n_context": keys["llama.context_length"],
        "rope_base": keys["llama.rope.freq_base"],
        "epsilon": keys["llama.attention.layer_norm_rms_epsilon"],
    }
    vocabulary = {"pieces": keys["tokenizer.ggml.tokens"], "scores": keys["tokenizer.ggml.scores"], "types": keys["tokenizer.ggml.token_type"]}
    return config, {name: torch.tensor(t) for name, t in tensors.items()}, tokenizer.Tokenizer(vocabulary)


def choose(scores, recent, temperature, knobs):
    """The next token, chosen as the program does by default: penalty first, then the likeliest or a draw."""
    scores = scores.clone()
    for token in set(recent[-int(knobs["window"]):]):
        scores[token] = scores[token] / knobs["repeat"] if scores[token] > 0 else scores[token] * knobs["repeat"]
    if temperature == 0:
        return int(scores.argmax())
    top, ids = scores.topk(int(knobs["top-k"]))
    chance = (top / temperature).softmax(-1)
    keep = (chance.cumsum(-1) - chance < knobs["top-p"]) & (chance >= knobs["min-p"] * chance[0])
    return int(ids[torch.multinomial(chance * keep, 1)])


def answer(model, chat, question, temperature, knobs):
    config, weights, tok = model
    text = "".join(corpus.render_question(q) + a + "<|im_end|>\n" for q, a in chat) + corpus.render_question(question)
    ids = tok.encode_chat(text)
    cache, out, end = {}, [], tok.special["<|im_end|>"]
    rows = torch.tensor([ids])
    while len(out) < LONGEST:
        states = network.hidden(weights, config, rows, cache=cache)
        token = choose(network.logits(weights, states[0, -1]), ids + out, temperature, knobs)
        if token == end:
            break
        out.append(token)
        rows = torch.tensor([[token]])
    return tok.decode(out)


def sentences(text):
    return [part.strip() for part in re.split(r"(?<=[.!?:]) |\n", text) if part.strip()]


def known_sentences(facts):
    """What may be said whatever was asked."""
    return {s for fact in facts.values() for s in sentences(fact.answer) if not re.match(r"(It was|Yes|No)\b", s)}


def judge(fact, said, known):
    """(says all that was asked for and nothing that it must not, says nothing false)"""
    lower = said.lower()
    complete = all(any(word.lower() in lower for word in choice) for choice in fact.must)
    clean = not any(word.lower() in lower for word in fact.must_not)
    own = set(sentences(fact.answer))
    return complete and clean, clean and all(s in own or s in known for s in sentences(said))


class Score:
    def __init__(self):
        self.count = self.right = self.exact = self.true = 0

    def add(self, right, exact, true):
        self.count += 1
        self.right += right
        self.exact += exact
        self.true += true

    def __str__(self):
        return "%d: %.1f %% right, %.1f %% word for word, %.1f %% true" % (
            self.count, *(100 * n / self.count for n in (self.right, self.exact, self.true)))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default=os.path.join(corpus.HERE, "guide.gguf"))
    options.add_argument("--temperature", default="0", help="a number, or default: the program's own")
    options.add_argument("--show", action="store_true", help="print the wrong answers")
    o = options.parse_args()
    torch.manual_seed(1)
    knobs = {row["name"]: row["default"] for row in corpus.tables()["knobs"]}
    temperature = knobs["temp"] if o.temperature == "default" else float(o.temperature)
    model = load_model(o.model)
    cases = corpus.held_out_questions()
    known = known_sentences(corpus.load()[0])
    total = Score()
    groups = {"questions": Score(), "follow-ups": Score()}
    with torch.no_grad():
        for fact, chat, question in cases:
            said = answer(model, chat, question, temperature, knobs)
            right, true = judge(fact, said, known)
            for score in (total, groups["follow-ups" if chat else "questions"]):
                score.add(right, said == fact.answer, true)
            if o.show and not right:
                print("[%s] %s\n    %s" % (fact.name, " / ".join([q for q, _ in chat] + [question]), said.replace("\n", "\n    ")), flush=True)
    print("held out, at temperature %g" % temperature)
    for name, score in list(groups.items()) + [("all", total)]:
        print("%-10s %s" % (name, score))


if __name__ == "__main__":
    main()
