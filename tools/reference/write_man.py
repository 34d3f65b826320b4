"""Writes a manual page of section 3 for each function. A page may be about several functions: then the
files of the others refer to it."""
import re
import shutil
from itertools import groupby

from layout import is_code, prototype, sentence, short, tags
from subjects import HEADERS, SUBJECTS, by_subject

SECTIONS = {'Owner': 'OWNERSHIP', 'Source': 'SOURCES'}
MANY = 40  # a list of so many functions helps nobody


def write_man(folder, functions, version):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pages = group(functions)
    for name, members in pages.items():
        (folder / f'{name}.3').write_text(page(name, members, beside(name, pages), version))
        for other in members:
            if other.name != name:
                (folder / f'{other.name}.3').write_text(f'.so man3/{name}.3\n')
    (folder / 'duet.3').write_text(overview(functions, version))


def group(functions):
    """The functions of each page, by the name of the page."""
    ordered = sorted(functions, key=lambda f: f.page)
    return {name: list(members) for name, members in groupby(ordered, key=lambda f: f.page)}


def beside(name, pages):
    """The other pages about the same subject."""
    subject = pages[name][0].subject
    return [other for other, members in pages.items() if members[0].subject == subject and other != name]


def page(name, members, others, version):
    first = next(f for f in members if f.name == name)
    parts = [title(name, version), section('NAME', names(first, members))]
    parts += [section('SYNOPSIS', synopsis(members)), section('DESCRIPTION', description(first, members))]
    parts += [section(SECTIONS.get(tag, tag.upper()), roff(sentence(text))) for tag, text in tags(first)]
    if others and len(others) <= MANY:
        parts.append(section('SEE ALSO', references(['duet'] + others)))
    return ''.join(parts)


def title(name, version):
    return f'.TH {name} 3 "" "Duet {version}" "Duet"\n.nh\n.ad l\n'


def section(name, text):
    return f'.SH "{name}"\n{text}\n'


def roff(text):
    """Text for roff: backslashes, minus signs, and lines that would be requests."""
    text = text.replace('\\', '\\e').replace('-', '\\-')
    return re.sub(r"^([.'])", r'\\&\1', text, flags=re.M)


def names(first, members):
    listed = [first.name] + [f.name for f in members if f.name != first.name]
    return f'{", ".join(listed)} \\- {roff(short(first.summary))}'


def synopsis(members):
    lines = [f'#include <duet/{HEADERS.get(members[0].subject, "duet.h")}>', '']
    lines += [prototype(f) + (' { ... }' if f.kind == 'block' else ';') for f in members]
    calls = [f'{f.call};' for f in members if f.call]
    if calls:
        lines += ['', 'In C, as macros:'] + calls
    return code('\n'.join(lines), bold=True)


def code(text, bold=False):
    fonts = ('.ft B\n', '.ft R\n') if bold else ('', '')
    return f'.nf\n{fonts[0]}{roff(text)}\n{fonts[1]}.fi'


def description(function, members):
    shown = [roff(sentence(function.summary))]
    for paragraph in function.text:
        shown.append(f'.RS 4\n{code(paragraph)}\n.RE' if is_code(paragraph) else roff(sentence(paragraph)))
    for other in members:
        own = other.summary.replace(function.summary, '').lstrip('; ')
        if own and other != function:
            shown.append(roff(f'{other.name}: {sentence(own)}'))
    return '\n.PP\n'.join(shown)


def references(pages):
    return '\n'.join(f'.BR {p} (3){"," if p != pages[-1] else ""}' for p in pages)


def overview(functions, version):
    use = '#include <duet/duet.h>\n\ncc program.c $(pkg-config --cflags --libs duet)'
    parts = [title('duet', version), section('NAME', 'duet \\- matrix expressions on the CPU and the GPU')]
    parts.append(section('SYNOPSIS', code(use)))
    for subject, members in by_subject(functions):
        pages = list(dict.fromkeys(f.page for f in members))
        parts.append(section(SUBJECTS[subject].upper(), references(pages)))
    return ''.join(parts)
