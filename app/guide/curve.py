"""From a checkpoint of train.py to a picture of its losses: curve.py CHECKPOINT OUT.svg.

Two lines over the steps, on a logarithmic scale: the loss on what is trained on and on the held-out questions.
"""
import math
import sys

import torch

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 320, 64, 120, 16, 40
LINES = (("trained on", "#2a7de1"), ("held out", "#d9622b"))
GREY = "#888888"


def text(x, y, words, anchor="middle", colour=GREY):
    return '<text x="%.1f" y="%.1f" text-anchor="%s" fill="%s">%s</text>' % (x, y, anchor, colour, words)


def picture(history):
    """history: [(step, loss on what is trained on, loss on what is held out)]"""
    steps = history[-1][0]
    values = [value for row in history for value in row[1:]]
    low, high = math.floor(math.log2(min(values))), math.ceil(math.log2(max(values)))

    def place(step, value):
        return (LEFT + (WIDTH - LEFT - RIGHT) * step / steps,
                TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log2(value)) / (high - low))

    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT)]
    for power in range(low, high + 1):
        x, y = place(0, 2.0 ** power)
        parts += ['<path d="M%.1f %.1fH%d" stroke="%s" stroke-opacity="0.3"/>' % (x, y, WIDTH - RIGHT, GREY), text(x - 6, y + 4, "%g" % 2.0 ** power, "end")]
    for i in range(5):
        x, y = place(steps * i / 4, 2.0 ** low)
        parts.append(text(x, y + 16, "%d" % (steps * i / 4)))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, "steps; nats a question"))
    for column, (name, colour) in enumerate(LINES, 1):
        points = [place(row[0], row[column]) for row in history]
        parts.append('<path d="M%s" fill="none" stroke="%s" stroke-width="2"/>' % ("L".join("%.1f %.1f" % p for p in points), colour))
        parts.append(text(points[-1][0] + 6, points[-1][1] + 4, "%s %.2f" % (name, history[-1][column]), "start", colour))
    return "\n".join(parts + ["</svg>"]) + "\n"


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: curve.py CHECKPOINT OUT.svg")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(picture(torch.load(sys.argv[1])["history"]))


if __name__ == "__main__":
    main()
