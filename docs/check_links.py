"""check_links.py FOLDER - checks each link and picture of the HTML pages in a folder: the file must exist,
and have the place that the link names. Addresses of other sites are not opened."""
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.path, self.places, self.links = path, {''}, []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ('id', 'name'):
                self.places.add(value)
            elif name in ('href', 'src') and value is not None:
                self.links.append(value)


def broken(page, pages):
    for link in page.links:
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        target = (page.path.parent / unquote(address.path)).resolve() if address.path else page.path
        if not target.exists():
            yield link
        elif target in pages and unquote(address.fragment) not in pages[target].places:
            yield link


def main(folder):
    paths = [p.resolve() for p in Path(folder).rglob('*.html')]
    pages = {p: Page(p) for p in paths}
    found = [(p, link) for p, page in pages.items() for link in broken(page, pages)]
    for path, link in found:
        print(f'{path.relative_to(Path(folder).resolve())}: broken link {link}', file=sys.stderr)
    print(f'{sum(len(p.links) for p in pages.values())} links in {len(pages)} pages, {len(found)} broken')
    return bool(found) or not pages


sys.exit(main(sys.argv[1]))
