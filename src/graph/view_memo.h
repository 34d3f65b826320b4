/* view_memo.h - remembers what a change of a view has made of each value. A formula uses a value in several
 * places, and the functions of views.c follow every operand: without a memo, they would visit a value once
 * for each path to it, which takes exponential time for nested complex functions. */
#ifndef VIEW_MEMO_H
#define VIEW_MEMO_H

#include "views.h"

typedef struct view_memo_entry {
    int value;  /* one more than its index; 0: the entry is free */
    int change; /* an index of `changes` */
    int result;
} view_memo_entry;

typedef struct view_memo {
    view_memo_entry *entries; /* a hash table */
    int count, capacity;      /* capacity is a power of two */
    view_change *changes;     /* the different ones; operands that broadcast have changes of their own */
    int n_changes;
} view_memo;

/* Start with a memo that is all zeros. */
int view_memo_find(const view_memo *m, int x, const view_change *c);       /* the result; -1: unknown */
bool view_memo_add(view_memo *m, int x, const view_change *c, int result); /* false: out of memory */
void view_memo_free(view_memo *m);

#endif
