"""The guide's tokenizer: a SentencePiece-style BPE vocabulary as GGUF's "llama" model stores it.

Training counts pairs inside words (a word is a run of letters, one digit, or a run of marks, with the space before it
written as the mark U+2581). The score of a merged piece is minus its rank, so that the earliest merge wins, as in
SentencePiece. Encoding merges the pair with the highest score, the leftmost of equals; what no piece covers becomes
byte pieces. No space is put in front of a text (add_space_prefix is false in the file).
"""
import collections
import heapq
import re

SPACE = "\u2581"
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<|im_start|>", CONTROL), ("<|im_end|>", CONTROL)]
FIRST_BYTE = len(SPECIAL)
ROLES = ["user\n", "assistant\n", "system\n"]  # how a message begins: one piece each
WORDS = re.compile(SPACE + r"?[^\W\d_]+|" + SPACE + r"?\d|" + SPACE + r"?(?:[^\w\s" + SPACE + r"]|_)+|" + SPACE)


def count_words(texts):
    counts = collections.Counter()
    for text in texts:
        for line in text.replace(" ", SPACE).split("\n"):
            counts.update(WORDS.findall(line))
    return counts


def merge_pair(symbols, pair):
    merged, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged


class PairCounts:
    """How often each pair of neighbours occurs in the words, kept up to date while pairs are merged."""

    def __init__(self, counts):
        self.words = [(list(word), counts[word]) for word in sorted(counts)]
        self.counts, self.places = collections.Counter(), collections.defaultdict(set)
        for place in range(len(self.words)):
            self.count(place, 1)
        self.queue = [(-count, pair) for pair, count in self.counts.items()]
        heapq.heapify(self.queue)

    def count(self, place, sign):
        symbols, times = self.words[place]
        for pair in zip(symbols, symbols[1:]):
            self.counts[pair] += sign * times
            self.places[pair].add(place)

    def most_frequent(self):
        """The pair that occurs most, the first in the alphabet of equals; None when there is none."""
        while self.queue:
            count, pair = heapq.heappop(self.queue)
            if count and self.counts[pair] == -count:
                return pair
        return None

    def merge(self, pair):
        changed = set()
        for place in self.places.pop(pair):
            self.count(place, -1)
            before = set(zip(self.words[place][0], self.words[place][0][1:]))
            self.words[place] = (merge_pair(self.words[place][0], pair), self.words[place][1])
            self.count(place, 1)
            changed |= before | set(zip(self.words[place][0], self.words[place][0][1:]))
        for other in changed:
            heapq.heappush(self.queue, (-self.counts[other], other))


def train(texts, n_vocab, slots=(), controls=()):
    """A vocabulary: lists of pieces, scores and types, of length n_vocab, the slots among them, and those of the further control tokens."""
    counts = count_words(texts)
    pairs = PairCounts(counts)
    merges = []
    characters = sorted({c for word in counts for c in word})
    while FIRST_BYTE + 256 + len(slots) + len(characters) + len(merges) + len(ROLES) < n_vocab:
        pair = pairs.most_frequent()
        if pair is None:
            break
        merges.append(pair[0] + pair[1])
        pairs.merge(pair)
    pieces = [text for text, _ in SPECIAL] + ["<0x%02X>" % b for b in range(256)]
    types = [kind for _, kind in SPECIAL] + [BYTE] * 256
    learned = list(dict.fromkeys(merges + ROLES)) + characters
    if len(pieces) + len(learned) + len(slots) != n_vocab:
        raise ValueError("%d pieces cannot be learnt from these texts" % n_vocab)
    marks = list(slots) + list(controls)
    scores = [0.0] * len(pieces) + [-float(rank) for rank in range(len(learned))] + [0.0] * len(marks)
    return {"pieces": pieces + learned + marks, "scores": scores, "types": types + [NORMAL] * len(learned) + [CONTROL] * len(marks)}


class Tokenizer:
    def __init__(self, vocabulary):
        self.pieces, self.scores = vocabulary["pieces"], vocabulary["scores"]
        self.ids = {p: i for i, p in enumerate(self.pieces) if vocabulary["types"][i] == NORMAL}
        self.special = {p: i for i, p in enumerate(self.pieces) if vocabulary["types"][i] == CONTROL}
        self.mark = re.compile("|".join(map(re.escape, self.special)))
        self.known = {}

    def encode(self, text):
        """Ids of a text, in which no special token is looked for."""
        ids = []
        for part in re.split("(?=" + SPACE + ")", text.replace(" ", SPACE)):
            if part not in self.known:
                self.known[part] = self.encode_part(part)
            ids += self.known[part]
        return ids

    def encode_chat(self, text):
        """Ids of a rendered chat: control tokens are recognised."""
        ids, end = [], 0
        for mark in self.mark.finditer(text):
            ids += self.encode(text[end:mark.start()]) + [self.special[mark.group()]]
            end = mark.end()
        return ids + self.encode(text[end:])

    def encode_part(self, text):
        symbols = list(text)
        queue = [self.candidate(symbols, i, i + 1) for i in range(len(symbols) - 1)]
        queue = [c for c in queue if c]
        heapq.heapify(queue)
        after = list(range(1, len(symbols) + 1))
        before = list(range(-1, len(symbols) - 1))
        while queue:
            _, left, right, piece = heapq.heappop(queue)
            if symbols[left] is None or symbols[right] is None or symbols[left] + symbols[right] != piece:
                continue
            symbols[left], symbols[right] = piece, None
            after[left] = after[right]
            if after[left] < len(symbols):
                before[after[left]] = left
            for a, b in ((before[left], left), (left, after[left])):
                if a >= 0 and b < len(symbols):
                    found = self.candidate(symbols, a, b)
                    if found:
                        heapq.heappush(queue, found)
        return [i for s in symbols if s is not None for i in self.piece_ids(s)]

    def candidate(self, symbols, left, right):
        piece = symbols[left] + symbols[right]
        if piece not in self.ids:
            return None
        return (-self.scores[self.ids[piece]], left, right, piece)

    def piece_ids(self, piece):
        if piece in self.ids:
            return [self.ids[piece]]
        return [FIRST_BYTE + b for b in piece.encode()]

    def decode(self, ids):
        data = b""
        for i in ids:
            if FIRST_BYTE <= i < FIRST_BYTE + 256:
                data += bytes([i - FIRST_BYTE])
            else:
                data += self.pieces[i].replace(SPACE, " ").encode()
        return data.decode(errors="replace")
