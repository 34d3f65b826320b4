/* pass_list.h - passes as lists of values, shared by fusion.c and pass_split.c. */
#ifndef PASS_LIST_H
#define PASS_LIST_H

#include "lower.h"

/* Values in ascending order. */
typedef struct value_list {
    int count, v[PASS_VALUES];
} value_list;

/* Does v have one element for each element that `user` computes? Leading axes of one element do not
 * matter, except to operators that count axes. */
bool is_in_domain(const graph *g, int user, int v);

void make_leader(lowering *l, int v);             /* of a pass of its own */
void add_to_pass(lowering *l, int leader, int v); /* v, which is lower than all values of the pass */
int make_pass(lowering *l, const value_list *a);  /* of these values; returns the leader, the highest one */
value_list list_of(const lowering *l, int leader);
value_list merged_list(const value_list *a, const value_list *b);
value_list list_outputs(lowering *l, const value_list *a); /* the values that others use, too */

/* lowering.in_set as a set: add all operands of a list; remove the list and its operands. */
void set_add_operands(lowering *l, const value_list *a);
void set_clear(lowering *l, const value_list *a);

/* fusion.c: split a pass of several outputs so that each output leads a pass of its own. */
void assign_again(lowering *l, int leader);

#endif
