"""stage.py TOP FOLDER - copies the documents to a folder, with the pages that Sphinx needs in addition.

The site has the same tree as the sources, so that links between documents work in both. README.md is its
first page. A page that PAGES does not list is an error of Sphinx."""
import shutil
import sys
from pathlib import Path

PAGES = {
    'Start': ['docs/getting-started', 'docs/tutorial', 'docs/tutorial-groups', 'docs/concepts'],
    'Guides': ['docs/how-to', 'docs/groups', 'docs/examples', 'docs/from-numpy', 'docs/from-etl',
               'docs/performance', 'docs/cpp', 'docs/python', 'docs/platforms'],
    'Reference': ['docs/reference/index', 'docs/semantics', 'docs/operators', 'docs/accuracy', 'docs/trust',
                  'docs/environment'],
    'Project': ['NEWS', 'SECURITY', 'docs/results', 'docs/scale', 'docs/decisions', 'docs/developing',
                'docs/adding'],
}


def main(top, folder):
    shutil.rmtree(folder, ignore_errors=True)
    (folder / 'docs').mkdir(parents=True)
    for page in (top / 'docs').glob('*.md'):
        text = page.read_text().replace('](../README.md', '](../index.md')
        (folder / 'docs' / page.name).write_text(text)
    for page in ('NEWS.md', 'SECURITY.md'):
        shutil.copy(top / page, folder)
    shutil.copytree(top / 'bench' / 'results', folder / 'bench' / 'results')
    conf = (top / 'docs' / 'conf.py').read_text().replace('@TOP@', str(top))
    (folder / 'conf.py').write_text(conf)
    (folder / 'index.md').write_text((top / 'README.md').read_text() + ''.join(contents(top)))


def contents(top):
    """The navigation. Pages of the list that do not exist yet are left out."""
    for title, pages in PAGES.items():
        there = [p for p in pages if (top / f'{p}.md').exists() or p == 'docs/reference/index']
        if there:
            yield f'\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n' + '\n'.join(there) + '\n```\n'


main(*(Path(a).resolve() for a in sys.argv[1:]))
