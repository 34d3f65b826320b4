"""The structs of options: which members they have, and what the comments say of each."""
import re

from comments import read_comment

STRUCT = re.compile(r'^/\*(.*?)\*/|^typedef struct (duet_\w+) \{\n(.*?)\n\}', re.M | re.S)


class Options:
    def __init__(self):
        self.members, self.meanings = {}, {}

    def struct_of(self, parameters):
        """The struct of options among the parameters of a function, or None."""
        for parameter in parameters:
            match = re.match(r'const (duet_\w+) \*options$', parameter)
            if match and match[1] in self.members:
                return match[1]

    def of(self, parameters):
        struct = self.struct_of(parameters)
        if not struct:
            return ''
        meanings = [self.meanings[struct].get(m.split('[')[0]) for m in self.members[struct]]
        told = [f'{m}: {text}' if text else m for m, text in zip(self.members[struct], meanings)]
        return f'{struct}, or NULL where all are 0. ' + '. '.join(told)

    def call(self, name, operands, parameters):
        """duet_conv2d(x, filters, .stride = ..., .pad = ...): as many of the options as are needed."""
        struct = self.struct_of(parameters)
        if not struct:
            return ''
        if struct.startswith('duet_scale'):
            count = self.members[struct][0].strip('scale[]') or '1'
            return f'{name}({", ".join(operands)}, ' + ', '.join(['scale'] * int(count)) + ')'
        names = [f'.{m.split("[")[0]} = ...' for m in self.members[struct]]
        return f'{name}({", ".join(operands + names)})'


def read_options(include):
    """A member without a sentence of its own has that of the structs before it."""
    options, meanings = Options(), {}
    for header in ('options.h', 'arrange.h'):
        for comment, struct, body in STRUCT.findall((include / header).read_text()):
            if struct:
                options.members[struct] = members_of(body)
                options.meanings[struct] = dict(meanings)
            else:
                meanings.update(members_told(comment))
    return options


def members_of(body):
    body = re.sub(r'/\*.*?\*/', '', body, flags=re.S)
    body = body.replace('DUET_RANK_MAX', '8')
    return [m.strip() for line in re.findall(r'\w+ ([^;]*);', body) for m in line.split(',')]


def members_told(comment):
    return {name: text for name, text in read_comment(comment).items.items() if name.islower()}
