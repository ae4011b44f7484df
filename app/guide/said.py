"""Writes said.txt: the slots of the guide's answers, and the keys and names that they say themselves, one a line, as the
program's tables have them now. `make guide` runs it, so that the list stands for the file that was trained;
tests/unit/app/guide/test_guide.c fails when a line has become false.
"""
import re

import corpus

HEAD = "# What guide.gguf says of the program's tables, written by said.py. Each line must be true of `confab help --json`."


def named(names, pattern, answers):
    """Those of `names` that the answers say: the group of `pattern`."""
    found = {name for answer in answers for name in re.findall(pattern, answer)}
    return [name for name in names if name in found]


def lines(table, facts):
    answers = [corpus.SLOT.sub("", fact.answer) for fact in facts]
    text = "\n".join(answers)
    keys = [(c["name"], corpus.spoken_key(c["key"])) for c in table["keys"] if c["key"]]
    options = list(dict.fromkeys(name for c in table["commands"] for o in c["options"] for name in corpus.names_of(o)))
    return (["slot " + name for name in corpus.slots_of(facts)] +
            ["key %s = %s" % (name, key) for name, key in keys if re.search(r"(?<![\w+])%s(?!\w)" % re.escape(key), text)] +
            ["screen-command " + n for n in named([c["name"] for c in table["keys"]], r"\bcommand (?:is called )?([a-z-]+)", answers)] +
            ["knob " + n for n in named([k["name"] for k in table["knobs"]], r"[a-z][a-z-]*", answers)] +
            ["command " + n for n in named([c["name"] for c in table["commands"]], r"\bconfab ([a-z]+)", answers)] +
            ["option " + n for n in named(options, r"--([a-z][a-z-]*)", answers)] +
            ["setting " + n for n in named([name for s in table["settings"] for name in corpus.names_of(s)], r"\b([a-z][a-z-]*) = ", answers)] +
            ["state " + s for s in table["states"] if re.search(r"\b%s\b" % s, text)] +
            ["theme " + t for t in table["themes"] if re.search(r"\b%s\b" % t, text)])


if __name__ == "__main__":
    facts, _ = corpus.load()
    print("\n".join([HEAD] + lines(corpus.tables(), facts.values())))
