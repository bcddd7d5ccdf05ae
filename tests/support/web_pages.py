"""A page as a browser's parser takes it: its elements and its texts."""

from html.parser import HTMLParser


class WebPage(HTMLParser):
    """The elements of a page, and the texts outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw and data.strip():
            self.words.append(data.strip())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def readable(self) -> str:
        """Its texts, and those that only screen readers say."""
        labels = [attrs.get(name) for _, attrs in self.elements for name in ("aria-label", "title")]
        return " ".join([*self.words, *(label for label in labels if label)])
