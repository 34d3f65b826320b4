"""Lays out the documentation of a function as text of limited width, for headers."""
import re
import textwrap

PLAIN = re.compile(r'(?:the|an?|in|as|any|all|each|along|for|of|with|where|exact|joins|repeats|copies|shifts'
                   r'|uniform|normal|removes|inserts|splits|moves|sets|stores|runs|prints|starts|stops|returns|loads|saves|opens|closes)\b')
ORDER = 'Options', 'Shapes', 'Types', 'Accuracy', 'Threads', 'Failures', 'Owner', 'Errors', 'Source', 'Units'


def prototype(function, attributes=''):
    parameters = ', '.join(function.parameters) or 'void'
    return f'{attributes}{function.result}{function.name}({parameters})'


def sentence(text):
    """A text that ends with a period, and begins with a capital letter if it begins with a plain word."""
    text = text.rstrip()
    text = text[0].upper() + text[1:] if PLAIN.match(text) else text
    return text if text.endswith(('.', '!', '?', ':')) else text + '.'


def tags(function):
    """The tags that the function has, in the usual order."""
    return [(name, function.tags[name]) for name in ORDER if function.tags.get(name)]


def short(text):
    """What stands before the first period or semicolon."""
    return re.split(r'(?<!\.)\. (?=[A-Z])|; |\.$', text)[0]


def is_code(paragraph):
    return paragraph.startswith('    ')


def wrapped(text, first='', rest='', width=96):
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                         break_on_hyphens=False)


def comment_lines(function, head, width=96):
    """The lines of a comment, which begins with the lines `head`. Editors break lines after periods."""
    yield from head
    for paragraph in function.text:
        yield from paragraph.split('\n') if is_code(paragraph) else wrapped(sentence(paragraph), width=width)
    if function.call:
        yield from wrapped(f'In C: {function.call}.', width=width)
    for name, text in tags(function):
        yield from wrapped(sentence(text), f'{name:<10}', ' ' * 10, width)


def comment(lines, opening):
    text = '\n * '.join(lines).replace(' \n', '\n')
    if '*/' in text:
        raise ValueError(f'a comment ends within its text: {text}')
    return f'{opening} {text} */'
