#!/usr/bin/env python3
"""Makes man/picture.svg, the picture in README: of a real run of ./confab, in tmux, with the built-in model."""
import html
import os
import re
import subprocess
import tempfile
import time

COLUMNS, ROWS = 112, 33
CELL, LINE, SIZE, MARGIN = 8.43, 16.3, 14, 10
ASKED = ("How many chats can run at once?", "How do I begin a second chat?", "What does temperature do?")
FOLDER = os.path.dirname(os.path.abspath(__file__))


def tmux(*words):
    command = ("tmux", "-L", "confab-picture", "-f", "/dev/null", *words)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def run():
    """What the screen shows after a few chats, with escape sequences."""
    with tempfile.TemporaryDirectory() as home:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        os.environ.clear()
        os.environ.update(kept, HOME=home, COLORTERM="truecolor", LANG="C.UTF-8")
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        tmux("new-session", "-d", *size, os.path.join(FOLDER, "../confab"), ";", "set", "status", "off")
        tmux("resize-window", *size)
        time.sleep(2)
        for i, question in enumerate(ASKED):
            tmux("send-keys", *(["C-n"] if i else []))
            time.sleep(0.5)
            tmux("send-keys", "-l", question)
            tmux("send-keys", "Enter")
            time.sleep(2.5)
        screen = tmux("capture-pane", "-e", "-p", "-N")
        tmux("kill-server")
        return screen.rstrip("\n").split("\n")


class Style:
    """Of a cell, as SGR sequences change it: colours as "#rrggbb" or None, bold, reversed."""

    def __init__(self):
        self.text = self.ground = None
        self.bold = self.reverse = False

    def change(self, sequence):
        codes = [int(code or 0) for code in re.split("[;:]", sequence)]
        while codes:
            code = codes.pop(0)
            if code in (38, 48):
                kind = codes.pop(0)
                colour = "#%02x%02x%02x" % tuple(codes[:3]) if kind == 2 else None
                del codes[: 3 if kind == 2 else 1]
                setattr(self, "text" if code == 38 else "ground", colour)
            elif code == 0:
                self.__init__()
            elif code in (1, 22):
                self.bold = code == 1
            elif code in (7, 27):
                self.reverse = code == 7
            elif code in (39, 49):
                setattr(self, "text" if code == 39 else "ground", None)

    def key(self):
        text, ground = self.text or "#d0d0d0", self.ground
        return (ground or "#101014", text, self.bold) if self.reverse else (text, ground, self.bold)


def runs(style, line):
    """The line as (column, text, style) where neighbours of one style are together; begins with the style before it."""
    column, found = 0, []
    for part in re.split(r"(\x1b\[[0-9;:]*m)", line):
        if part.startswith("\x1b["):
            style.change(part[2:-1])
            continue
        for word in re.findall(r" {2,}|(?:[^ ]| (?! ))+", part):
            if found and found[-1][2] == style.key() and not word.isspace() and not found[-1][1].isspace():
                found[-1] = (found[-1][0], found[-1][1] + word, style.key())
            else:
                found.append((column, word, style.key()))
            column += len(word)
    return found


def svg(lines):
    width, height, style = COLUMNS * CELL + 2 * MARGIN, ROWS * LINE + 2 * MARGIN, Style()
    rows = [runs(style, line) for line in lines]
    grounds = [ground for row in rows for _, _, (_, ground, _) in row if ground]
    common = max(grounds, key=grounds.count) if grounds else "#101014"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-size="{SIZE}" '
        'font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" xml:space="preserve">',
        f'<rect width="100%" height="100%" rx="6" fill="{common}"/>',
    ]
    for i, row in enumerate(rows):
        for column, text, (colour, ground, bold) in row:
            x, y, length = MARGIN + column * CELL, MARGIN + i * LINE, len(text) * CELL
            if ground and ground != common:
                out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="{LINE}" fill="{ground}"/>')
            if not text.isspace():
                weight, text = ' font-weight="bold"' if bold else "", html.escape(text, False)
                place = f'x="{x:.1f}" y="{y + SIZE - 1:.1f}" textLength="{length:.1f}"'
                out.append(f'<text {place} fill="{colour}"{weight}>{text}</text>')
    return "\n".join(out) + "\n</svg>\n"


if __name__ == "__main__":
    picture = svg(run())
    with open(os.path.join(FOLDER, "picture.svg"), "w") as file:
        file.write(picture)
