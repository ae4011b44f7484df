"""Scores a guide on the held-out wordings: check.py [FILE.gguf] [--temperature T] [--every N] [--show].

The program itself answers (`confab run`, ./confab or $CONFAB), at temperature 0 unless another one is given, otherwise
with its default sampling. An answer is right when it says all that its fact asks for (the lines `!` of the corpus) and
nothing it must not say (`~`), or what another fact asks for whose answer would do as well (`&`); of a list of answers, which the guide
gives when it is unsure, one has to be right. It is true when each of
its sentences stands in the corpus, where all of them are true; sentences that are true only as an answer to their own
question ("It was Ctrl+P.", "No, …") count only there. It invents when it names a key, an option, a setting, a command or a
type that the program does not have. Some questions are asked once more: later in a chat, in capitals, and with one pair of
letters swapped ("plain" are the same ones as they stand). "second turns" follow an answer. "strange" is what no wording
foresees: other languages, pasted pages, code; "little" is one sign, a digit, a letter or a word that other programs obey.
Those that the program itself suggests should get no list. At the end stands what was aimed at, and whether it is reached.
"""
import argparse
import concurrent.futures
import os
import re
import subprocess
import tempfile

import corpus

LONGEST = 400  # tokens of an answer
N_AFTER = 5  # turns that each suggested question is asked after, besides alone


def ask(model, chat, question, temperature, home):
    text = corpus.render_chat(chat, question)
    options = ["--raw", "-m", model, "-n", str(LONGEST), "--seed", "1", "-t", "1"]
    if temperature is not None:
        options += ["--temp", str(temperature)]
    surroundings = dict(os.environ, XDG_CONFIG_HOME=home, XDG_DATA_HOME=home)
    said = subprocess.run([corpus.PROGRAM, "run"] + options + ["--", text], check=True, capture_output=True, text=True, env=surroundings)
    return said.stdout.rstrip("\n")


def answers_in(said):
    """Those of a list, or the only one."""
    return re.split(r"^\d\. ", said, flags=re.MULTILINE)[1:] if said.startswith(corpus.LEAD) else [said]


def sentences(text):
    return [part.strip() for part in re.split(r"(?<=[.!?]) |\n", text) if part.strip()]


def known_sentences(facts):
    """What may be said whatever was asked."""
    return {s for fact in facts.values() for s in sentences(fact.said) if not re.match(r"(It was|Yes|No)\b", s)}


def is_true(fact, said, known):
    """Says nothing false."""
    answers, own = answers_in(said), set(sentences(fact.said))
    return bool(said) and (len(answers) > 1 or corpus.is_clean(fact, said)) and all(s in own or s in known for answer in answers for s in sentences(answer))


class Score:
    """What a share of the answers is like, by COLUMNS."""
    COLUMNS = ("right", "by its own fact", "true", "lists", "invents")

    def __init__(self):
        self.count, self.sums = 0, [0] * len(self.COLUMNS)

    def add(self, marks):
        self.count += 1
        self.sums = [n + mark for n, mark in zip(self.sums, marks)]

    def share(self, column):
        return 100 * self.sums[self.COLUMNS.index(column)] / max(1, self.count)

    def __str__(self):
        return "%d: " % self.count + ", ".join("%.1f %% %s" % (self.share(name), name) for name in self.COLUMNS)


def aims(groups):
    """[(what is aimed at, what it is, whether that is enough)]"""
    right = {name: score.share("right") for name, score in groups.items()}
    rows = [("questions right, at least 92 %", right["questions"], right["questions"] >= 92),
            ("questions true, at least 97 %", groups["questions"].share("true"), groups["questions"].share("true") >= 97),
            ("second turns right, at least 85 %", right["second turns"], right["second turns"] >= 85)]
    for name in ("capitals", "swapped"):
        rows.append(("%s right, within 3 points of plain (%.1f %%)" % (name, right["plain"]), right[name], right[name] >= right["plain"] - 3))
    most = max(score.share("invents") for score in groups.values())
    return rows + [("little answered kindly, all", right["little"], right["little"] == 100), ("answers that invent names, none", most, most == 0)]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default=os.path.join(corpus.HERE, "guide.gguf"))
    options.add_argument("--temperature", default="0", help="a number, or default: the program's own")
    options.add_argument("--show", action="store_true", help="print the wrong answers")
    options.add_argument("--every", type=int, default=1, help="ask one question in so many")
    o = options.parse_args()
    temperature = None if o.temperature == "default" else float(o.temperature)
    maker = corpus.Maker(1)
    facts = maker.facts
    held_out = corpus.held_out_questions()[::o.every]
    cases = [(("second turns" if case[1] else "questions", "all"), case) for case in held_out]
    cases += [(("later",), case) for case in corpus.asked_later(held_out)]
    again = [case for case in held_out if not case[1]][::corpus.LATER]
    for name, change in (("plain", str), ("capitals", str.upper), ("swapped", lambda text: corpus.swapped(text, maker.rng))):
        cases += [((name,), (meant, chat, change(question))) for meant, chat, question in again]
    cases += [(("little",), case) for case in corpus.little_questions(facts)]
    cases += [(("strange",), (meant, [], question)) for meant, question in corpus.strange_questions(facts, corpus.held_out)]
    cases += [(("suggested",), case) for case in corpus.suggested_questions(maker, N_AFTER)]
    known, there = known_sentences(facts), corpus.Names(corpus.tables())
    groups = {name: Score() for name in ("questions", "second turns", "all", "later", "plain", "capitals", "swapped", "little", "strange", "suggested")}
    with tempfile.TemporaryDirectory() as home, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        answers = pool.map(lambda case: ask(o.model, case[1][1], case[1][2], temperature, home), cases)
        for (names, (meant, chat, question)), said in zip(cases, answers):
            right = [any(corpus.is_right(fact, answer) for answer in answers_in(said)) for fact in meant]
            true = any(is_true(fact, said, known) for fact in meant)
            for name in names:
                groups[name].add((any(right), right[0], true, said.startswith(corpus.LEAD), bool(there.strange(said))))
            if o.show and not any(right):
                print("[%s] %s\n    %s" % (meant[0].name, " / ".join([q for q, _ in chat] + [question]), said.replace("\n", "\n    ")), flush=True)
    print("held out, at temperature %s" % o.temperature)
    for name, score in groups.items():
        print("%-12s %s" % (name, score))
    for aim, value, reached in aims(groups):
        print("%s: %.1f %%, %s" % (aim, value, "reached" if reached else "missed"))


if __name__ == "__main__":
    main()
