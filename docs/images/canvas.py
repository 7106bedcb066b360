"""A small canvas that writes SVG, for the pictures of these pages: boxes, arrows, lines, text."""

import itertools
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

INK = "#1f2933"
FAINT = "#7b8794"
PALE = "#cbd2d9"
BLUE, GREEN, AMBER, RED = "#2f6fb7", "#2b8a5b", "#b7791f", "#c2413b"
FILLS = {BLUE: "#e8f1fb", GREEN: "#e6f5ec", AMBER: "#fbf3e0", RED: "#fbeaea", FAINT: "#f5f7fa"}

Point = tuple[float, float]


@dataclass
class Canvas:
    """A white sheet of so many pixels."""

    width: int
    height: int
    title: str
    """What the picture shows, for those who cannot see it."""
    _parts: list[str] = field(default_factory=list)

    def box(self, at: Point, size: Point, lines: list[str], colour: str = FAINT) -> None:
        """Draw a box: its first line is bold and on top, the others follow, small."""
        (x, y), (width, height) = at, size
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" '
            f'fill="{FILLS[colour]}" stroke="{colour}" stroke-width="1.5"/>'
        )
        for place, line in enumerate(lines):
            size_, weight = (14, "bold") if place == 0 else (12, "normal")
            self.text((x + 10, y + 21 + 17 * place), line, size=size_, weight=weight)

    def text(
        self,
        at: Point,
        words: str,
        size: int = 12,
        weight: str = "normal",
        colour: str = INK,
        anchor: str = "start",
    ) -> None:
        """Write a line; ``at`` is where its baseline starts, ends or has its middle."""
        self._parts.append(
            f'<text x="{at[0]:g}" y="{at[1]:g}" font-size="{size}" font-weight="{weight}" '
            f'fill="{colour}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def line(
        self, points: list[Point], colour: str = FAINT, width: float = 1.5, dash: str = ""
    ) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self._parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" '
            f'stroke-width="{width:g}"{dashes}/>'
        )

    def arrow(self, points: list[Point], words: str = "", colour: str = INK) -> None:
        """Draw an arrow through points, with words above the middle of its longest part."""
        self.line(points, colour)
        (x1, y1), (x2, y2) = points[-2], points[-1]
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 1)
        dx, dy = (x2 - x1) / length * 9, (y2 - y1) / length * 9
        head = [
            (x2, y2),
            (x2 - dx - dy / 2, y2 - dy + dx / 2),
            (x2 - dx + dy / 2, y2 - dy - dx / 2),
        ]
        self._parts.append(
            f'<polygon points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in head)}" fill="{colour}"/>'
        )
        if words:
            pairs = itertools.pairwise(points)
            a, b = max(pairs, key=lambda ab: abs(ab[0][0] - ab[1][0]) + abs(ab[0][1] - ab[1][1]))
            self.text(((a[0] + b[0]) / 2, (a[1] + b[1]) / 2 - 6), words, 11, anchor="middle")

    def dot(self, at: Point, colour: str, radius: float = 3.5) -> None:
        """Draw a dot."""
        self._parts.append(
            f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="{radius:g}" fill="{colour}"/>'
        )

    def svg(self) -> str:
        """Return the file's text."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" '
            'font-family="Helvetica, Arial, sans-serif">'
        )
        sheet = f'<rect width="{self.width}" height="{self.height}" rx="10" fill="#ffffff"/>'
        return "\n".join(
            [head, f"<title>{escape(self.title)}</title>", sheet, *self._parts, "</svg>\n"]
        )
