"""Writes said.txt: the keys, numbers and names that the guide's answers say, one a line, as the program's tables have them
now. `make guide` runs it, so that the list stands for the file that was trained; tests/unit/app/guide/test_guide.c fails
when a line has become false.
"""
import re

import corpus

HEAD = "# What guide.gguf says of the program's tables, written by said.py. Each line must be true of `confab help --json`."


def named(names, pattern, answers):
    """Those of `names` that the answers say: the group of `pattern`."""
    found = {name for answer in answers for name in re.findall(pattern, answer)}
    return [name for name in names if name in found]


def lines(table, answers):
    text = "\n".join(answers)
    keys = [(c["name"], corpus.spoken_key(c["key"])) for c in table["keys"] if c["key"]]
    options = list(dict.fromkeys(o["name"] for c in table["commands"] for o in c["options"]))
    return (["key %s = %s" % (name, key) for name, key in keys if re.search(r"(?<![\w+])%s(?!\w)" % re.escape(key), text)] +
            ["screen-command " + n for n in named([c["name"] for c in table["keys"] if not c["key"]], r"\bcommand ([a-z-]+)", answers)] +
            ["%s %s = %s" % (column, k["name"], corpus.number(k[column])) for k in table["knobs"] for column in ("default", "low", "high")] +
            ["command " + n for n in named([c["name"] for c in table["commands"]], r"\bconfab ([a-z]+)", answers)] +
            ["option " + n for n in named(options, r"--([a-z][a-z-]*)", answers)] +
            ["setting " + n for n in named([s["name"] for s in table["settings"]], r"\b([a-z][a-z-]*) = ", answers)] +
            ["state " + s for s in table["states"] if re.search(r"\b%s\b" % s, text)] +
            ["theme " + t for t in table["themes"] if re.search(r"\b%s\b" % t, text)] +
            ["default-theme = " + table["default_theme"]])


if __name__ == "__main__":
    facts, _ = corpus.load()
    print("\n".join([HEAD] + lines(corpus.tables(), [fact.answer for fact in facts.values()])))
