"""Writes the reference as pages in Markdown, one for each subject, for Sphinx with MyST."""
import re

from layout import is_code, prototype, sentence, short, tags
from subjects import SUBJECTS, by_subject

INTRODUCTION = '''All functions, by subject. The [index](genindex) lists them by name.

A formula operator takes matrices, formulas and C numbers as operands. *In C* shows how to call a macro that
takes lists, or options by their names. Parentheses call the function itself: `(duet_reshape)(x, 2, sizes)`.
Your editor shows the same text over a call (it needs clangd), and so does `man duet_softmax`.
'''


def write_pages(folder, functions):
    folder.mkdir(parents=True)
    known = {f.name for f in functions}
    for subject, members in by_subject(functions):
        entries = ''.join(entry(f, known) for f in members)
        (folder / f'{subject}.md').write_text(f'# {SUBJECTS[subject]}\n\n{summaries(members)}\n{entries}')
    contents = '```{toctree}\n:maxdepth: 1\n\n' + '\n'.join(SUBJECTS) + '\n```\n'
    (folder / 'index.md').write_text(f'# Reference\n\n{INTRODUCTION}\n{contents}')


def summaries(members):
    pages = [f for f in members if f.name == f.page]
    rows = ''.join(f'| {{c:func}}`{f.name}` | {markdown(short(f.summary), ())} |\n' for f in pages)
    return f'| function | result |\n|---|---|\n{rows}' if pages else ''


def entry(function, known):
    body = [sentence(markdown(function.summary, known))]
    body += [f'```c\n{p}\n```' if is_code(p) else sentence(markdown(p, known)) for p in function.text]
    body += [f'In C: `{function.call}`'] * bool(function.call)
    fields = [f':{name}: {sentence(markdown(text, known))}' for name, text in tags(function)]
    text = '\n\n'.join(body + ['\n'.join(fields)])
    kind = 'c:macro' if function.kind == 'block' else 'c:function'
    return f'\n````{{{kind}}} {declared(function)}\n\n{text}\n````\n'


def declared(function):
    """A macro has no types."""
    names = ', '.join(p.split()[-1].strip('*') for p in function.parameters)
    return f'{function.name}({names})' if function.kind == 'block' else prototype(function)


def markdown(text, known):
    """Escapes the characters that mean something in Markdown. Names of functions and documents become
    links."""
    parts = re.split(r'(`[^`]*`|\bduet_\w+|docs/\w+\.md)', text)
    return ''.join(linked(p, known) if i % 2 else escaped(p) for i, p in enumerate(parts))


def linked(part, known):
    if part in known:
        return f'{{c:func}}`{part}`'
    if part.startswith('docs/'):
        return f'[{part}](../{part[len("docs/"):]})'
    return part if part.startswith('`') else f'`{part}`'


def escaped(text):
    return re.sub(r'([\\*_<>\[\]{}|$#~^])', r'\\\1', text)
