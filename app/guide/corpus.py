"""The guide's corpus: facts from corpus/*.txt and from the program's own tables, and the chats made of them.

A corpus file is a list of facts:

    == id
    a wording of the question          (a|b|) stands for one of the alternatives, @name for a word of lists.txt
    = the answer                       several such lines make several lines
    ! must be said | or this           every such line has to hold; used by check.py
    ~ must not be said | nor this
    > a follow-up question => id       asked after this answer, it is answered by the fact `id`
    & a wording => id, id              the answers of these facts would do as well; used by check.py and doubt.py
    * a question                       that the program, an answer or a paper suggests: it is answered without a list

A fact may be opened again: most wordings stand in wordings/, in the file of the same name. One without wordings is an
answer to follow-ups only. The follow-ups of the fact `*` may come after any answer. strange.txt has, under the facts that
answer it, lines of what no wording foresees, such as other languages and pasted pages, and, after `? `, what shall be done
with them. Placeholders are filled from the tables of the program: {key:stop} {help:stop} {default:temp} {low:temp}
{high:temp} {step:temp} {label:temp} {theme:default} {themes} {states}, defaults of settings too: {default:kv-disk}. A command
without a key is written as it is typed: {key:private} is /private. What confab lacks is in a table of the program (guide.h):
{lack:media} is what it says of that, and once the row is gone the program fills in that it came later. In answers those of
SLOT_NAME become slots, control tokens such as <|key:stop|> that the program fills in when it opens the guide, so that keys,
defaults and what is lacking cannot drift.
"""
import glob
import hashlib
import json
import math
import os
import random
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, "corpus")
ROOT = os.path.dirname(os.path.dirname(HERE))
PROGRAM = os.environ.get("CONFAB", os.path.join(ROOT, "confab"))
MODIFIERS = {"C": "Ctrl", "M": "Alt", "S": "Shift"}
AGAIN = ["(which|what) key was (that|it) (again|)?", "sorry, which key (again|)?", "what was the key (again|)?", "I forgot the key already", "say the key again",
         "the key again, please", "can you repeat the key?", "which one (was it|)?", "what did I have to press?", "just the key, please", "only the key?"]
ABOUT_KEY = [  # how people ask what a key does
    "what does %s do?", "what is %s for?", "%s?", "what happens (when|if) I press %s?", "(I pressed|I hit) %s, what (happened|was that)?", "%s does what?",
    "tell me about %s", "(explain|meaning of) %s", "what can I do with %s?", "is %s used for (anything|something)?", "the key %s", "%s key",
    "what's %s?", "whats %s do", "what does the key %s do in confab?", "which command (is on|lies on|belongs to) %s?", "what is %s bound to?",
    "what's bound to %s?", "does %s (do|mean) anything (here|)?", "what is the (function|purpose|use) of %s?", "what is the point of %s?",
    "I (accidentally|by mistake) pressed %s", "I pressed %s by accident(, what did it do|)?", "oops, I pressed %s", "what did %s just do?",
    "%s was pressed, what now?", "what would %s do?", "what will %s do if I press it?", "should I press %s?", "when do I (need|use) %s?",
    "why would I press %s?", "how do I use %s?", "what do I get by pressing %s?", "(help says|the help lists|there is) %s, what is (it|that)?",
    "at the bottom it says %s, what is that?", "what does pressing %s (do|change)?", "what is the command of %s (called|)?",
    "the (command|action) behind %s", "%s shortcut", "what does the (shortcut|hotkey) %s do?", "describe %s", "%s, what for?", "and %s?",
    "what is behind %s?", "%s does nothing, what should it do?", "nothing happens with %s, what is it for?", "is it safe to press %s?",
    "will %s (break|delete|lose) (something|anything)?"]
OTHER_KEYS = {"Ctrl+C", "Ctrl+Shift+V", "Alt+X"}  # of the terminal and of the line editor; an example
OTHER_OPTIONS = {"help", "version", "summary"}  # of every command; of vulkaninfo
OTHER_SETTINGS = {"name", "accent"}  # that stand for any setting or role of a theme
OTHER_TYPED = {"chats", "open", "again", "metrics", "health", "props", "tokenize", "detokenize"}  # in the chat without a screen; paths of the server
OTHER_TYPES = {"IQ1", "IQ2", "IQ3", "IQ4", "NVFP4", "TQ1_0", "TQ2_0"}  # that are only read
LONG_NAMES = {"temp": "temperature", "repeat": "repeat penalty", "presence": "presence penalty", "frequency": "frequency penalty", "window": "penalty window"}
VARIED = 0.5    # share of the questions of chats that are not asked as they stand
HOLD_OUT = 10   # one wording in this many is never trained on
SET_ASIDE = 40  # from one in this many the guide only learns when to be unsure
LATER = 10      # of so many held-out questions one is asked later in a chat too
STRANGE = {"languages": (45, 8, 500), "code-refusal": (20, 40, 2500), "task-refusal": (25, 150, 3500), "unclear": (10, 8, 300)}  # how often; characters
N_STRANGE = 300  # questions to check the guide with
KIND = ["little", "can-do", "unclear", "hello", "okay", "help", "palette", "quit", "stop", "slash", "escape", "interrupt", "redraw", "suspend", "thanks", "bye",
        "first-steps", "settings", "ls", "readme", "terminal-broken", "option-help", "after-stop", "rude"]  # facts that answer little questions kindly
CONTROL_WORDS = ["help", "/help", "quit", "exit", ":q", ":q!", ":wq", "q", "bye", "stop", "clear", "cls", "reset", "ls", "cd ..", "sudo", "man", "esc", "ctrl c",
                 "^C", "test", "y", "n", "yes", "no", "ok", "null", "start", "menu", "back", "--help", "?!", "...", "asdf", "0x00", "\\n"]
NEIGHBOURS = 12  # lines that stand near each other are of one kind
UNSURE = "<|unsure|>"  # control token: a list of what may be meant comes next, then LEAD and their answers, numbered
LIST = 3  # answers when unsure
BEFORE_QUESTION, AFTER_QUESTION = "<|im_start|>user\n", "<|im_end|><|im_start|>assistant\n"
LIST_NAME = re.compile(r"(?<!\w)@(\w+)")  # in a wording: any word of that list
SLOT_NAME = r"((?:key|default|low|high|step|lack):[a-z0-9-]+|theme:default|themes|states)"
PLACEHOLDER, SLOT = re.compile(r"\{%s\}" % SLOT_NAME), re.compile(r"<\|%s\|>" % SLOT_NAME)
LEAD = "I am not sure that I understood. It may be one of these:"
NOTHING = "0123456789 \n\t!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~…"  # what says nothing alone
REMEMBERED = 200  # characters of a question that is still read when the next one is asked


class Fact:
    """topic: the control token that the guide puts before the answer, so that it chooses what to say in one step.
    answer: what the guide writes, with slots; said: what is shown of it, and read when the next question is asked."""

    def __init__(self, name):
        self.name, self.wordings, self.must, self.must_not, self.follow, self.also = name, [], [], [], [], {}
        self.answer, self.said = "", ""
        self.suggested = []
        self.topic = "<|fact:%s|>" % ("again" if name.startswith("again-") else name)

    def add_answer(self, text, values):
        """A line with placeholders."""
        line = "\n" if self.answer else ""
        self.answer += line + fill(slotted(text), values)
        self.said += line + fill(text, values)


def listed(topic, place):
    """The control token of a topic at a place of a list: every place has its own, so that the answer with its number finds it."""
    return topic.replace("fact", str(place + 1), 1) if place else topic


# ---- the program's tables ----

def key_parts(key):
    """Of a key in either notation, C-p or Ctrl+P: its modifiers in full, and the key itself."""
    *modifiers, last = re.split(r"(?<=[a-zA-Z])[-+]", key)
    return [MODIFIERS.get(m, m) for m in modifiers] + [last]


def spoken_key(key):
    """C-p → Ctrl+P, M-Up → Alt+Up, S-F5 → Shift+F5; Ctrl+P stays what it is."""
    *modifiers, last = key_parts(key)
    return "+".join(modifiers + [last.upper() if len(last) == 1 else last])


def number(value):
    return "%.10g" % value


def tables():
    """What `confab help --json` says."""
    table = json.loads(subprocess.run([PROGRAM, "help", "--json"], check=True, capture_output=True, text=True).stdout)
    table["themes"].sort(key=lambda name: name != table["default_theme"])
    return table


def names_of(row):
    """Of a row of a table its name, and the old one that is still understood."""
    return [row["name"]] + ([row["old_name"]] if "old_name" in row else [])


def settings_of(table):
    """Rows of all settings, those that only options have too."""
    return table["settings"] + [option for command in table["commands"] for option in command["options"]]


def enumerate_words(words):
    return ", ".join(words[:-1]) + " and " + words[-1]


def placeholders(table):
    values = {"theme:default": table["themes"][0], "themes": enumerate_words(table["themes"]), "states": enumerate_words(table["states"])}
    for command in table["keys"]:
        values["key:" + command["name"]] = spoken_key(command["key"]) if command["key"] else "/" + command["name"]
        values["help:" + command["name"]] = command["help"]
    for setting in settings_of(table):
        if "default" in setting:
            values["default:" + setting["name"]] = setting["default"]
    for lack in table["lacks"]:
        values["lack:" + lack["name"]] = lack["says"]
    for knob in table["knobs"]:
        for column in ("low", "high", "step", "default"):
            values["%s:%s" % (column, knob["name"])] = number(knob[column])
        values["help:" + knob["name"]], values["label:" + knob["name"]] = knob["help"], knob["label"]
    return values


def fill(text, values):
    return re.sub(r"\{([a-z]+(?::[a-z0-9-]+)?)\}", lambda m: values[m.group(1)], text)


def slot(name):
    """The control token of a slot."""
    return "<|%s|>" % name


def slotted(text):
    return PLACEHOLDER.sub(lambda m: slot(m.group(1)), text)


def slots_of(facts):
    """Names of the slots in the answers."""
    return sorted({name for fact in facts for name in SLOT.findall(fact.answer)})


# ---- corpus files ----

def lines_of(name):
    with open(os.path.join(CORPUS, name), encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip() and not line.startswith("#")]


def read_lists(values):
    lists = {}
    for line in lines_of("lists.txt"):
        name, words = line.removeprefix("@").split("=", 1)
        lists[name.strip()] = [fill(w.strip(), values) for w in words.split("|")]
    return lists


def read_line(facts, line, values, path):
    mark, rest = (line[:2], line[2:].strip()) if line[:2] in ("==", "= ", "! ", "~ ", "> ", "& ", "* ") else ("", line)
    fact = facts[-1] if facts else None
    if mark == "==":
        again = [f for f in facts if f.name == rest]
        facts.append(again[0] if again else Fact(rest))
    elif mark == "= ":
        fact.add_answer(rest, values)
    elif mark == "! ":
        fact.must.append([fill(w.strip(), values) for w in rest.split("|")])
    elif mark == "~ ":
        fact.must_not += [fill(w.strip(), values) for w in rest.split("|")]
    elif mark == "> ":
        wording, target = rest.rsplit("=>", 1)
        fact.follow.append((fill(wording.strip(), values), target.strip()))
    elif mark == "& ":
        wording, targets = rest.rsplit("=>", 1)
        fact.also[fill(wording.strip(), values)] = targets.replace(",", " ").split()
    elif mark == "* ":
        fact.suggested.append(rest)
    elif fact is None:
        raise ValueError("%s: a wording before the first fact: %s" % (path, line))
    elif fill(line, values) not in fact.wordings:
        fact.wordings.append(fill(line, values))


def read_facts(values):
    facts = []
    names = sorted(glob.glob("*.txt", root_dir=CORPUS)) + sorted(glob.glob("wordings/*.txt", root_dir=CORPUS))
    for name in names:
        if name not in ("lists.txt", "words.txt", "relatives.txt", "system.txt", "strange.txt"):
            for line in lines_of(name):
                read_line(facts, line, values, name)
    return list(dict.fromkeys(facts))


def key_names(key):
    """How people write a key."""
    *long, last = key_parts(key)
    if not long:
        return {"F": [key, key.lower(), key.replace("F", "f "), "the %s key" % key]}.get(key[0] if key[1:].isdigit() else "", [key, key.lower()])
    short = "-".join([m for name in long for m in MODIFIERS if MODIFIERS[m] == name] + [last.lower() if len(last) == 1 else last])
    if long == ["Ctrl"] and len(last) == 1:
        names = ["Ctrl+" + last.upper(), "ctrl+" + last.lower(), "ctrl " + last.lower(), "Ctrl-" + last.upper(), "control " + last.lower(),
                 "^" + last.upper(), short]
    else:
        names = ["+".join(long + [last]), " ".join(long + [last]).lower(), "-".join(long + [last]), short]
    return names


def table_facts(table, values):
    """What follows from the tables alone: what each key does, what each knob's default and range are."""
    facts = []
    for command in table["keys"]:
        if not command["key"]:
            continue
        fact = Fact("key-" + command["name"])
        keys = "(" + "|".join(key_names(command["key"])) + ")"
        fact.wordings = [wording % keys for wording in ABOUT_KEY]
        fact.add_answer("{key:%s}: %s. Its command is called %s." % (command["name"], command["help"], command["name"]), values)
        fact.must = [[spoken_key(command["key"])], [command["help"]]]
        facts.append(fact)
    for knob in table["knobs"]:
        fact = Fact("default-" + knob["name"])
        long = LONG_NAMES.get(knob["name"], knob["name"].replace("-", " "))
        name = "(" + "|".join(dict.fromkeys((knob["name"], knob["label"], long, "the " + long))) + ")"
        fact.wordings = ["what is the default of %s?" % name, "(default|normal|standard) (value|setting) of %s?" % name, "%s default?" % name,
                         "what value does %s have (by default|at first|normally)?" % name, "what range (can|does) %s have?" % name,
                         "how (high|low|far) can %s go?" % name, "(minimum|maximum|range|limits|least and greatest value) of %s?" % name,
                         "what is %s set to (by default|at the start|out of the box)?" % name, "which values are allowed for %s?" % name]
        if knob["name"] == "seed":
            fact.add_answer("seed is {default:seed} by default, which means another one each time. Any whole number up to {high:seed} can be set.", values)
        else:
            fact.add_answer(re.sub("NAME", knob["name"], "NAME is {default:NAME} by default and goes from {low:NAME} to {high:NAME}."), values)
        fact.must = [[knob["name"]], [number(knob["default"])], [number(knob["high"])]]
        facts.append(fact)
    return facts


def with_wordings(generated, written):
    """All facts; what was written for those of the tables is more wordings, and other words for what must be said."""
    by_name = {fact.name: fact for fact in generated}
    for fact in written:
        if fact.name in by_name:
            if fact.answer:
                raise ValueError("fact %s has an answer from the tables" % fact.name)
            by_name[fact.name].wordings += fact.wordings
            by_name[fact.name].also.update(fact.also)
            by_name[fact.name].must[-1] += sum(fact.must, [])
    return [fact for fact in written if fact.name not in by_name] + generated


def again_facts(facts, values):
    """"Which key was that again?" after every answer that names one key: answered with that key."""
    out = []
    keys = [name for name in values if name.startswith("key:")]
    for fact in facts:
        named = [name for name in keys if re.search(r"(?<![\w+/])%s(?![\w-])" % re.escape(values[name]), fact.said)]
        if len(named) != 1 or not fact.wordings:
            continue
        again = Fact("again-" + fact.name)
        again.add_answer("It was {%s}." % named[0], values)
        again.must = [[values[named[0]]]]
        fact.follow += [(wording, again.name) for wording in AGAIN]
        out.append(again)
    return out


class Names:
    """All names that an answer may say: keys, options, settings, commands and types that the program has."""
    TYPE = r"\b(?:I?Q\d\w*|TQ\d_\d|MXFP4|NVFP4|BF16|F16|F32)\b"

    def __init__(self, table):
        said = subprocess.run([PROGRAM, "help", "quantize"], check=True, capture_output=True, text=True).stdout
        self.keys = {spoken_key(command["key"]) for command in table["keys"]} | OTHER_KEYS
        self.options = {name for command in table["commands"] for option in command["options"] for name in names_of(option)} | OTHER_OPTIONS
        self.settings = {name for setting in table["settings"] for name in names_of(setting)} | OTHER_SETTINGS
        self.typed = {name for command in table["keys"] for name in names_of(command)} | self.settings | OTHER_TYPED
        self.commands = {command["name"] for command in table["commands"]}
        self.types = set(re.findall(self.TYPE, said)) | OTHER_TYPES

    def strange(self, text):
        """Those in the text that are not there."""
        found = [(self.keys, "", re.findall(r"(?:(?:Ctrl|Alt|Shift)\+)+(?:[A-Z][a-z]+|F\d+|[^\s.,;:)])", text)),
                 (self.options, "--", re.findall(r"(?<!\w)--([a-z][a-z-]*)", text)),
                 (self.settings, "", re.findall(r"(?<![\w-])([a-z][a-z-]*) = (?!=)", text)),
                 (self.typed, "/", re.findall(r"(?:^|[\s(\"])/([a-z][a-z-]+)(?![\w/.-])", text)),
                 (self.commands | {"with"}, "confab ", re.findall(r"\bconfab ([a-z]+) (?=-)", text)),
                 (self.types, "", re.findall(self.TYPE, text))]
        return [mark + name for known, mark, names in found for name in names if name not in known]


def check_names(facts, names):
    """An answer may name no key, option, setting, command or type that the program does not have."""
    for fact in facts:
        strange = names.strange(fact.said)
        if strange:
            raise ValueError("the answer of %s names what is not there: %s" % (fact.name, ", ".join(strange)))


def is_clean(fact, answer):
    return not any(word.lower() in answer.lower() for word in fact.must_not)


def is_right(fact, answer):
    """Says all that was asked for and nothing that it must not."""
    return is_clean(fact, answer) and all(any(word.lower() in answer.lower() for word in choice) for choice in fact.must)


def check_musts(facts):
    """The answer of a fact has to say what must be said."""
    for fact in facts:
        if not is_right(fact, fact.said):
            raise ValueError("the answer of %s does not say what it must: %s" % (fact.name, fact.said))


def check_suggested(facts, table):
    """What the program or an answer suggests to ask must be known as suggested."""
    known = {question for fact in facts for question in fact.suggested}
    for question in table["questions"] + [q for fact in facts for q in re.findall(r'"([a-z][^"]*\?)"', fact.said)]:
        if question not in known:
            raise ValueError("is suggested and nowhere answered: %s" % question)


def check_lists(facts, lists):
    """Every @name of a wording must be a list."""
    for fact in facts:
        for wording in fact.wordings + [follow for follow, _ in fact.follow]:
            for name in LIST_NAME.findall(wording):
                if name not in lists:
                    raise ValueError("a wording of %s names a list that is not there: %s" % (fact.name, wording))


def load():
    """All facts by name, and the lists for @name."""
    table = tables()
    values = placeholders(table)
    known = with_wordings(table_facts(table, values), read_facts(values))
    known += again_facts(known, values)
    check_names(known, Names(table))
    check_musts(known)
    check_suggested(known, table)
    facts = {}
    for fact in known:
        if fact.name in facts:
            raise ValueError("fact %s is there twice" % fact.name)
        facts[fact.name] = fact
    for fact in facts.values():
        if not fact.answer:
            raise ValueError("fact %s has no answer" % fact.name)
        for target in [target for _, target in fact.follow] + sum(fact.also.values(), []):
            if target not in facts:
                raise ValueError("fact %s leads to %s, which is not there" % (fact.name, target))
        for wording in fact.also:
            if wording not in fact.wordings:
                raise ValueError("fact %s has no wording: %s" % (fact.name, wording))
    lists = read_lists(values)
    check_lists(facts.values(), lists)
    return facts, lists


# ---- wordings ----

def expand(wording, lists, rng):
    wording = LIST_NAME.sub(lambda m: rng.choice(lists[m.group(1)]), wording)
    inner = re.compile(r"\(([^()]*\|[^()]*)\)")
    while inner.search(wording):
        wording = inner.sub(lambda m: rng.choice(m.group(1).split("|")), wording)
    return re.sub(r" +([?.,!]|$)", r"\1", re.sub(r"  +", " ", wording)).strip()


def one_in(count, byte, fact, wording):
    """The same ones always: a function of the text alone."""
    return hashlib.sha256((fact.name + ":" + wording).encode()).digest()[byte] % count == 0


def held_out(fact, wording):
    """True for one wording in HOLD_OUT, which is never trained on."""
    return one_in(HOLD_OUT, 0, fact, wording) and len(fact.wordings) + len(fact.follow) > 4


def set_aside(fact, wording):
    """True for one of the other wordings in SET_ASIDE."""
    return one_in(SET_ASIDE, 1, fact, wording) and len(fact.wordings) > 4 and not held_out(fact, wording)


def taught(fact, wording):
    return not held_out(fact, wording) and not set_aside(fact, wording)


LEADS = ["please", "hey,", "hi,", "hello,", "so", "ok,", "ok so", "um,", "quick question:", "can you tell me:", "tell me,", "a question:",
         "sorry,", "excuse me,", "I wonder,", "well,", "and", "now", "I would like to know:", "do you know", "please tell me:", "help:", "hm,",
         "one more thing:", "another question:", "maybe a stupid question:", "not sure if you know, but", "my question is:", "next question:",
         "dear guide,", "guide,", "hi guide,", "hello there,", "I was wondering:", "by the way,", "also", "actually,", "oh,", "wait,", "then"]
SENTENCES = ["I am new here.", "I have a question.", "Sorry to bother you.", "Hello!", "Hi!", "Thanks.", "Thank you!", "Great, thanks.", "I do not get it.",
             "I have just installed confab.", "I am using confab for the first time.", "I need your help.", "I like this program.", "Good morning!",
             "I have tried everything.", "I could not find it in the help.", "Now something else.", "Okay, understood.", "I am a beginner.", "Nice."]
TAILS = ["please", "thanks", "thank you", "in confab", "here", "pls", "in this program", "exactly", "again", "if I may ask", "in this chat program",
         "right now", "while I am chatting", "on my computer", "with confab", "by any chance", "actually", "then", "though", "for me", "anyway"]
AFTERWORDS = ["I cannot find it.", "Thanks in advance!", "I am lost.", "Thank you.", "It annoys me.", "I forgot.", "Please help.", "I have no idea.", "Any idea?"]
SMALL_WORDS = {"the", "a", "an", "my", "this", "do", "does", "i", "is", "are", "to", "of", "can", "please", "it"}


def terse(text):
    """As somebody types who saves every letter: "how do I change the temperature?" → "how change temperature"."""
    words = text.split(" ")
    kept = [w for w in words if w.lower() not in SMALL_WORDS]
    return " ".join(kept if len(kept) > 1 else words)


def swapped_at(word, at):
    return word[:at] + word[at + 1] + word[at] + word[at + 2:]


def swapped(text, rng):
    """One pair of letters, neighbours in a word, has changed places."""
    pairs = [m.start() for m in re.finditer(r"(?<=[a-zA-Z])(?=([a-zA-Z])(?!\1)[a-zA-Z])", text)] or [
        m.start() for m in re.finditer(r"(?=([a-zA-Z])(?!\1)[a-zA-Z])", text)]
    return swapped_at(text, rng.choice(pairs)) if pairs else text


def typo(word, rng):
    at = rng.randrange(1, len(word) - 1)
    kind = rng.randrange(3)
    if kind == 0:
        return swapped_at(word, at)
    if kind == 1:
        return word[:at] + word[at + 1:]
    return word[:at] + word[at] + word[at:]


def load_words():
    groups = [[w.strip() for w in line.split("|")] for line in lines_of("words.txt")]
    return {word: group for group in groups for word in group}


WORDS = load_words()
WORDS_PATTERN = re.compile(r"(?<![\w-])(%s)(?![\w-])" % "|".join(sorted(map(re.escape, WORDS), key=len, reverse=True)))


def keywords(text, rng):
    """Two to four words of the question, as somebody types who searches."""
    words = [w for w in text.rstrip("?.!").split(" ") if w.lower() not in SMALL_WORDS]
    kept = sorted(rng.sample(range(len(words)), min(len(words), rng.randint(2, 4))))
    return " ".join(words[i] for i in kept) or text


def splice(first, second, rng):
    """The beginning of one and the end of another way to ask for the same fact."""
    first, second = first.split(" "), second.split(" ")
    return " ".join(first[:(len(first) + rng.randint(0, 1)) // 2] + second[len(second) // 2:])


def without_some(text, rng):
    """Words are missing: no single word may decide what is meant."""
    words = text.split(" ")
    kept = [w for w in words if rng.random() > 0.15]
    return " ".join(kept if len(kept) > 1 else words)


def thesaurus():
    """[(words of one family, words of like meaning)]"""
    return [tuple(side.split() for side in line.split("|")) for line in lines_of("relatives.txt")]


def load_relatives():
    """{word: the others of its family in the thesaurus, and the words of like meaning}"""
    out = {}
    for family, near in thesaurus():
        for word in family:
            out.setdefault(word, []).extend([other for other in family if other != word] + near)
    return out


RELATIVES = load_relatives()


def scramble(text, rng):
    """Words are missing, replaced by relatives or in another order: what is meant may have changed with them."""
    words = []
    for word in text.split(" "):
        draw, relatives = rng.random(), RELATIVES.get(word.lower().strip("?.,!"))
        if draw >= 0.12:
            words.append(rng.choice(relatives) if draw < 0.3 and relatives else word)
    for i in range(len(words) - 1):
        if rng.random() < 0.05:
            words[i], words[i + 1] = words[i + 1], words[i]
    return " ".join(words) or text


def uncapital(text):
    return text if re.match(r"I\b|[A-Z]\w*[+\d]", text) else text[:1].lower() + text[1:]


def vary(text, rng):
    """The same question as another person would type it."""
    text = WORDS_PATTERN.sub(lambda m: rng.choice(WORDS[m.group(1)]) if rng.random() < 0.25 else m.group(1), text)
    if rng.random() < 0.06:
        text = keywords(text, rng)
    elif rng.random() < 0.1:
        text = terse(text)
    if rng.random() < 0.3:
        text = without_some(text, rng)
    if rng.random() < 0.12:
        text = rng.choice(LEADS) + " " + uncapital(text)
    elif rng.random() < 0.06:
        text = rng.choice(SENTENCES) + " " + text[:1].upper() + text[1:]
    if rng.random() < 0.07:
        end = text[-1] if text[-1:] in "?.!" else ""
        text = text.rstrip("?.!") + rng.choice((" ", ", ")) + rng.choice(TAILS) + end
    elif rng.random() < 0.04:
        text = text + ("" if text[-1:] in "?.!" else "?") + " " + rng.choice(AFTERWORDS)
    if rng.random() < 0.12:
        words = text.split(" ")
        long = [i for i, w in enumerate(words) if len(w) > 4 and w.isalpha()]
        if long:
            i = rng.choice(long)
            words[i] = typo(words[i], rng)
            text = " ".join(words)
    if rng.random() < 0.4:
        text = text.rstrip("?.!")
    elif rng.random() < 0.2 and text[-1:].isalnum():
        text += "?"
    if rng.random() < 0.45:
        text = text.lower()
    elif rng.random() < 0.7:
        text = text[:1].upper() + text[1:]
    return text


# ---- strange questions ----

class Strange:
    """Draws what no wording foresees: other languages, pasted pages, code. Of the lines of strange.txt only those that keep(fact, line)."""

    def __init__(self, facts, rng, keep):
        self.facts, self.rng, self.lines, self.tasks = facts, rng, {}, {}
        for line in lines_of("strange.txt"):
            if line.startswith("== "):
                fact = facts[line[3:]]
                lines, tasks = self.lines.setdefault(fact.name, []), self.tasks.setdefault(fact.name, [])
            elif keep(fact, line):
                (tasks if line.startswith("? ") else lines).append(line.removeprefix("? "))

    def text(self, name, length):
        """Lines near each other, some without their beginning."""
        lines, joint = self.lines[name], self.rng.choice(" \n")
        at, text = self.rng.randrange(len(lines)), ""
        while len(text) < length:
            line = lines[(at + self.rng.randrange(NEIGHBOURS)) % len(lines)]
            text += joint + line[self.rng.randrange(len(line)) if self.rng.random() < 0.3 else 0:]
        return text[:length].strip()

    def question(self):
        """(question, fact)"""
        name = self.rng.choices(list(STRANGE), [often for often, _, _ in STRANGE.values()])[0]
        _, shortest, longest = STRANGE[name]
        text = self.text(name, int(shortest * math.exp(self.rng.random() * math.log(longest / shortest))))
        if self.tasks[name] and self.rng.random() < 0.6:
            parts = [self.rng.choice(self.tasks[name]), text]
            text = self.rng.choice(" \n").join(parts if self.rng.random() < 0.7 else parts[::-1])
        return text, self.facts[name]

    def others(self, fact):
        """The other answers to such questions."""
        return [self.facts[name] for name in STRANGE if name != fact.name]


# ---- chats ----

class Maker:
    """Draws chats for training from a seed."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.facts, self.lists = load()
        self.systems = lines_of("system.txt")
        self.plain = {f.name: [w for w in f.wordings if taught(f, w)] for f in self.facts.values()}
        self.strange = Strange(self.facts, self.rng, taught)
        self.follow = {f.name: self.follow_ups(f) for f in self.facts.values()}
        self.names = [name for name, wordings in self.plain.items() if wordings]
        self.weights = [len(self.plain[name]) ** 0.9 for name in self.names]

    @staticmethod
    def follow_ups(fact):
        """[(name of the fact that answers, wording)] without the held-out ones."""
        return [(name, wording) for wording, name in fact.follow if not held_out(fact, "> " + wording)]

    def as_it_stands(self, _, wording):
        return expand(wording, self.lists, self.rng)

    def varied(self, name, wording):
        """As somebody might type it; now and then its end is that of another wording for the fact."""
        question = expand(wording, self.lists, self.rng)
        if self.plain[name] and self.rng.random() < 0.1:
            question = splice(question, expand(self.rng.choice(self.plain[name]), self.lists, self.rng), self.rng)
        return vary(question, self.rng)

    def mistyped(self, _, wording):
        """As it stands, but for one swapped pair of letters."""
        return swapped(expand(wording, self.lists, self.rng), self.rng)

    def scrambled(self, name, wording):
        """What only a teacher can say the topic of: half of another question, other words."""
        question = expand(wording, self.lists, self.rng)
        if self.rng.random() < 0.4:
            other = self.plain[name if self.rng.random() < 0.5 else self.rng.choices(self.names, self.weights)[0]]
            pair = [question, expand(self.rng.choice(other), self.lists, self.rng)]
            self.rng.shuffle(pair)
            question = splice(*pair, self.rng)
        question = scramble(question, self.rng)
        return vary(question, self.rng) if self.rng.random() < 0.5 else question

    def question(self, name, wording):
        return self.varied(name, wording) if self.rng.random() < VARIED else expand(wording, self.lists, self.rng)

    def turns(self, count):
        """A chat of about `count` turns: [(question, fact)]; follow-ups come right after what they follow."""
        turns, last = [], None
        while len(turns) < count:
            draw = self.rng.random()
            if last and self.follow[last] and draw < 0.45:
                name, wording = self.rng.choice(self.follow[last])
            elif last and draw < 0.6:
                name, wording = self.rng.choice(self.follow["*"])
            else:
                name = self.rng.choices(self.names, self.weights)[0]
                wording = self.rng.choice(self.plain[name])
            turns.append((self.question(name, wording), self.facts[name]))
            last = name
        return turns

    def chat(self, longest):
        draw = self.rng.random()
        return self.turns(1 if draw < 0.45 else self.rng.randint(2, 4) if draw < 0.8 else self.rng.randint(3, longest))

    def recital(self):
        """One question and its answer, of every fact equally often; half the time a follow-up."""
        name = self.rng.choice(self.names)
        chat = [(self.question(name, self.rng.choice(self.plain[name])), self.facts[name])]
        if self.follow[name] and self.rng.random() < 0.5:
            target, wording = self.rng.choice(self.follow[name])
            chat.append((self.question(target, wording), self.facts[target]))
        return chat

    def system(self):
        """Now and then a system prompt, otherwise None."""
        return self.rng.choice(self.systems) if self.rng.random() < 0.04 else None


def render_system(text):
    return "<|im_start|>system\n" + text + "<|im_end|>"


def as_read(text):
    """What the chat template makes of a question: no capitals, and one without a letter leads on."""
    return text.lower() if text.strip(NOTHING) else "what can you do?"


def render_question(text):
    return BEFORE_QUESTION + as_read(text) + AFTER_QUESTION


def remembered(chat):
    """Of the turns before a question [(question, fact)] those that are read with it, as template.jinja says: follow-ups need
    the last one, and all others would only mislead."""
    return [turn for turn in chat[-1:] if len(turn[0]) <= REMEMBERED]


def render_chat(chat, question):
    """What the program makes of the turns of a chat and a question after them."""
    return "".join(render_question(asked) + fact.said + "<|im_end|>" for asked, fact in remembered(chat)) + render_question(question)


def encode_question(tok, text):
    """Ids of render_question, but no control token is looked for in the text."""
    return tok.encode_chat(BEFORE_QUESTION) + tok.encode(as_read(text)) + tok.encode_chat(AFTER_QUESTION)


def encode_answer(tok, fact):
    """Ids of what the guide writes: slots are tokens, and no other control token is looked for."""
    ids = []
    for i, part in enumerate(SLOT.split(fact.answer)):
        ids += [tok.special[slot(part)]] if i % 2 else tok.encode(part)
    return ids


def answering(facts, fact, wording):
    """The facts whose answers are right: first the one that the wording was written for."""
    return [fact] + [facts[name] for name in fact.also.get(wording, ())]


def strange_questions(facts, keep, seed=1):
    """[(facts that answer, question)] of those lines of strange.txt. Any answer to strange questions will do: first the one that is meant."""
    strange = Strange(facts, random.Random(seed), keep)
    drawn = [strange.question() for _ in range(N_STRANGE)]
    return [([fact] + strange.others(fact), question) for question, fact in drawn]


def little_questions(facts):
    """[(facts that answer, [], question)]: one sign, a digit, a letter, a word that other programs obey. Any kind answer will do."""
    kind = [facts[name] for name in KIND]
    return [(kind, [], text) for text in [chr(c) for c in range(33, 127)] + CONTROL_WORDS]


def suggested_questions(maker, count):
    """[(facts that answer, chat before, question)]: each alone, and after so many other turns."""
    return [([fact], chat, question) for fact in maker.facts.values() for question in fact.suggested
            for chat in [[]] + [maker.turns(1) for _ in range(count)]]


def questions_set_aside(maker):
    """[(facts that answer, chat before, question)]: every wording set aside, as it stands, mistyped and varied, also after another
    turn; and strange questions."""
    aside = [(fact, wording) for fact in maker.facts.values() for wording in fact.wordings if set_aside(fact, wording)]
    asked = [(fact, wording, make(fact.name, wording), []) for fact, wording in aside for make in (maker.as_it_stands, maker.mistyped)] + [
        (fact, wording, maker.varied(fact.name, wording), maker.turns(i % 2)) for fact, wording in aside for i in range(4)]
    strange = strange_questions(maker.facts, set_aside)
    return [(answering(maker.facts, fact, wording), chat, question) for fact, wording, question, chat in asked] + [
        (meant, maker.turns(i % 2), question) for i, (meant, question) in enumerate(strange)]


def held_out_questions(seed=1):
    """[(facts that answer, chat before: [(question, fact)], question)]: every held-out wording, as it stands; follow-ups after the
    question they follow."""
    rng = random.Random(seed)
    facts, lists = load()
    out = []
    for fact in facts.values():
        for wording in fact.wordings:
            if held_out(fact, wording):
                out.append((answering(facts, fact, wording), [], expand(wording, lists, rng)))
        for wording, target in fact.follow:
            if held_out(fact, "> " + wording):
                first = [w for w in fact.wordings if not held_out(fact, w)]
                before = fact if first else facts["stop"]
                asked = expand(rng.choice(first or before.wordings), lists, rng)
                out.append(([facts[target]], [(asked, before)], expand(wording, lists, rng)))
    return out


def asked_later(cases, seed=1):
    """Of the held-out questions some once more, after one to three turns about something else."""
    maker = Maker(seed)
    return [(meant, maker.turns(maker.rng.randint(1, 3)), question) for meant, before, question in cases[::LATER] if not before]


if __name__ == "__main__":
    known, _ = load()
    print("%d facts, %d wordings, %d follow-ups, %d held out" % (
        len(known), sum(len(f.wordings) for f in known.values()), sum(len(f.follow) for f in known.values()), len(held_out_questions())))
    maker = Maker(0)
    for _ in range(5):
        for asked, fact in maker.chat(6):
            print("> %s\n  %s" % (asked, fact.said.replace("\n", "\n  ")))
        print()
