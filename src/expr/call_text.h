/* call_text.h - error messages of operators: "duet_take(x: f32[4,3], indices: f32[2]): indices must
 * be an integer matrix". Rules write the part behind the colon with fail(); the functions here put
 * the call in front of it. Private to src/expr. */
#ifndef CALL_TEXT_H
#define CALL_TEXT_H

#include "arena.h"
#include "compiler.h"

/* The documented name of operand k of duet_<function>, such as "x" or "filters". */
const char *operand_name(const char *function, int k) __attribute__((cold));

/* The documented name of operand k of an operator. */
static inline const char *operand_of_op(enum op op, int k) { return operand_name(op_infos[op].name, k); }

/* Puts the call of duet_<function> in front of the thread's text. If an operand failed earlier, the text
 * begins with its call already, and stays as it is. x[k] is NULL if operand k is not a live formula.
 * Returns s. */
duet_status fail_in_call(duet_status s, const char *function, int arity, node *const x[])
    __attribute__((cold));

/* Returns the failed result of duet_<function>. Consumes the operands. */
duet_expr call_failed(arena *a, const char *function, int arity, node *const x[], duet_status s,
                      const char *site) __attribute__((cold));

/* Copies the rule of the thread's text, without the calls in front of it. site: of the user's call. */
void rule_of_text(const char *site, char text[sizeof(error_text)]) __attribute__((cold));

/* Returns `made`, which duet_<function> built from the operands e[] by other operators. If it
 * failed, its text names the call of duet_<function>, and then the rule that was broken. If the rule
 * makes no sense for the operands of that call, it names the inner operator first. */
duet_expr composed_failed(const char *function, int arity, const duet_expr e[], duet_expr made,
                          const char *site) __attribute__((cold));
static inline duet_expr composed(const char *function, int arity, const duet_expr e[], duet_expr made,
                                 const char *site)
{
    const arena *a = arena_here();
    if (likely(a && made.serial > a->last_failed)) return made; /* made after the latest failure */
    return composed_failed(function, arity, e, made, site);
}

#endif
