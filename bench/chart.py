"""Bar charts as SVG text, for the docs."""

import html
import math

COLOURS = ("#d1495b", "#30638e", "#5f93bd", "#edae49", "#f4cf90", "#5b8e7d", "#9cc3b4")
LEFT, WIDTH, BAR, GAP = 170, 520, 9, 14


def bars(groups, title):
    """`groups`: {group: {name: value > 0}}; a row a group, a bar a name, on one logarithmic scale."""
    names = list(dict.fromkeys(name for group in groups.values() for name in group))
    low = min(min(group.values()) for group in groups.values()) / 1.5
    high = max(max(group.values()) for group in groups.values())

    def length(value):
        return WIDTH * math.log(value / low) / math.log(high / low)

    parts, y = [text(10, 18, title, "bold")], 34
    for index, name in enumerate(names):
        x = 10 + index * 108
        parts += [f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{COLOURS[index % len(COLOURS)]}"/>', text(x + 14, y, name)]
    y += GAP
    for group, values in groups.items():
        parts.append(text(10, y + len(values) * BAR / 2 + 4, group))
        for name, value in values.items():
            colour = COLOURS[names.index(name) % len(COLOURS)]
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{length(value):.1f}" height="{BAR - 1}" fill="{colour}"/>')
            parts.append(text(LEFT + length(value) + 4, y + BAR - 1, f"{value:.2f}" if value < 10 else f"{value:,.0f}", size=8))
            y += BAR
        y += GAP
    style = '<style>text{font-family:sans-serif;fill:#222}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 90}" height="{y}">{style}{"".join(parts)}</svg>\n'


def text(x, y, words, weight="normal", size=11):
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}">{html.escape(words)}</text>'
