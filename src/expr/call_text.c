/* call_text.c - the call that a user made, as the first part of an error message. See call_text.h. */
#include "call_text.h"
#include "operands.h"
#include "status.h"
#include "thread.h"

/* Writes the shape of a matrix, such as "f32[2,3]", or the value of a number. */
static const char *operand_text(const node *x, char text[SHAPE_TEXT])
{
    const bool is_matrix = x && !(x->flags & (NODE_FAILED | NODE_WEAK));
    if (is_matrix) return shape_text(text, (duet_dtype)x->type, x->rank, x->size);
    if (!x) return "no formula";
    if (x->flags & NODE_FAILED) return x->attr.failure.status == DUET_FREED ? "freed matrix" : "NULL";
    if (x->op != OP_NUMBER) return dtype_is_complex((duet_dtype)x->type) ? "a complex number" : "a number";
    return number_text(x, text);
}

/* "duet_take(x: f32[4,3], indices: f32[2])" */
#define CALL_TEXT (3 * SHAPE_TEXT + 100)
static void call_text(char text[CALL_TEXT], const char *function, int arity, node *const x[])
{
    char one[SHAPE_TEXT];
    int n = snprintf(text, CALL_TEXT, "duet_%s(", function);
    for (int k = 0; k < arity; k++)
        n += snprintf(text + n, CALL_TEXT - (size_t)n, "%s%s: %s", k ? ", " : "", operand_name(function, k),
                      operand_text(x[k], one));
    snprintf(text + n, CALL_TEXT - (size_t)n, ")");
}

/* Does the thread's text name a call, perhaps behind "file:line: "? */
static bool names_call(void) { return !strncmp(duet_error(), "duet_", 5) || error_has_place(); }

duet_status fail_in_call(duet_status s, const char *function, int arity, node *const x[])
{
    char call[CALL_TEXT];
    if (names_call()) return s;
    call_text(call, function, arity, x);
    return fail_within(s, "%s", call);
}

duet_expr call_failed(arena *a, const char *function, int arity, node *const x[], duet_status s,
                      const char *site)
{
    fail_in_call(s, function, arity, x);
    return failed(a, arity, x, s, site);
}

/* ---- operators composed of others ---- */

/* Copies the thread's text without "file:line: ". Of nested operators, only the innermost one stays. */
static void innermost(const char *site, char text[sizeof(error_text)])
{
    const char *from = duet_error();
    const size_t n = site ? strlen(site) : 0;
    if (n && !strncmp(from, site, n) && !strncmp(from + n, ": ", 2)) from += n + 2;
    for (const char *in; (in = strstr(from, "): in duet_"));) from = in + strlen("): in ");
    snprintf(text, sizeof(error_text), "%s", from);
}

void rule_of_text(const char *site, char text[sizeof(error_text)])
{
    innermost(site, text);
    const char *rule = strncmp(text, "duet_", 5) ? NULL : strstr(text, "): ");
    if (rule) memmove(text, rule + 3, strlen(rule + 3) + 1);
}

/* Finds the nodes of the operands, including consumed ones. Returns the status of the first invalid
 * operand, or DUET_OK. */
static duet_status find_operands(const arena *a, const char *function, int arity, const duet_expr e[],
                                 node *x[])
{
    uint32_t root, length;
    const uint32_t *words = a->words;
    duet_status s = DUET_OK;
    for (int k = 0; k < arity; k++) {
        const bool is_held = e[k].serial & SERIAL_HELD;
        if (is_held) {
            const node *held = held_look(e[k], &root, &words, &length);
            x[k] = held ? (node *)held + root : NULL;
        } else x[k] = arena_look(a, e[k].serial);
        if (x[k] && x[k]->flags & NODE_SPENT) x[k] = NULL;
        if (s != DUET_OK) continue;
        const char *name = operand_name(function, k);
        if (!x[k]) s = is_held ? held_missing(e[k], name) : arena_missing(a, e[k], name);
        else if (x[k]->flags & NODE_FAILED) s = failure_of(x[k], words, name);
    }
    return s;
}

/* Does x break the rule of the composed operator itself? If so, sets the text. */
static bool breaks_own_rule(const char *function, const node *x)
{
    static const struct {
        const char *function;
        int axes;
    } least[] = {
        { "instance_norm", 3 },    { "instance_norm_grad", 3 },    { "layer_norm", 1 },
        { "layer_norm_grad", 1 },  { "layer_norm_scale_grad", 1 }, { "batch_norm", 1 },
        { "batch_norm_grad", 1 },  { "batch_norm_scale_grad", 1 }, { "bias_batch_sum", 1 },
        { "bias_batch_mean", 1 },  { "bias_batch_var", 1 },        { "softmax_grad", 1 },
        { "log_softmax_grad", 1 }, { "cross_entropy_logits", 1 },  { "cross_entropy_logits_grad", 1 },
    };
    if (!x || x->flags & NODE_FAILED) return false;
    for (size_t i = 0; i < sizeof least / sizeof *least; i++)
        if (!strcmp(least[i].function, function) && x->rank < least[i].axes) {
            const char *axes = least[i].axes == 1 ? "axis" : "axes";
            fail(DUET_BAD_SHAPE, "%s must have at least %d %s, not %d", operand_name(function, 0),
                 least[i].axes, axes, x->rank);
            return true;
        }
    if (strncmp(function, "p_max_pool_", 11) != 0 || !strstr(duet_error(), "do not broadcast")) return false;
    fail(DUET_BAD_SHAPE, "the sizes of the last two axes of x must be multiples of the window");
    return true;
}

/* Does the rule that the inner call `text` broke make sense without that call? It does if it names no
 * operand, or if the inner call has the same operand x. */
static bool is_general(const char *text, const char *rule, int arity, const node *x)
{
    static const char *const general[] = { "complex elements ",           "bool elements ",
                                           "integer elements ",           "the elements must",
                                           "the operands have no common", "the operands must" };
    char sizes[SHAPE_TEXT], call[SHAPE_TEXT + 8];
    for (size_t i = 0; i < sizeof general / sizeof *general; i++)
        if (!strncmp(rule, general[i], strlen(general[i]))) return true;
    if (arity > 1 && !strcmp(rule, "the shapes of the operands do not broadcast")) return true;
    snprintf(call, sizeof call, "(x: %s): ", operand_text(x, sizes));
    return !strncmp(rule, "axis ", 5) && strstr(text, call);
}

static duet_expr name_again(const char *function, int arity, const duet_expr e[], duet_expr made,
                            const char *site, bool within)
{
    arena *a = arena_mine();
    node *x[3] = { NULL }, *n = a ? arena_look(a, made.serial) : NULL;
    char text[sizeof(error_text)];
    if (!n || !(n->flags & NODE_FAILED)) return made;
    duet_status s = find_operands(a, function, arity, e, x);
    if (s != DUET_OK && names_call()) return made; /* an operand had failed before */
    if (s == DUET_OK) {
        s = failure_of(n, a->words, "x");
        innermost(site, text);
        const bool is_call = !strncmp(text, "duet_", 5);
        const char *rule = is_call ? strstr(text, "): ") : NULL;
        const size_t n_name = strlen(function);
        const bool is_own = is_call && !strncmp(text + 5, function, n_name) && text[5 + n_name] == '(';
        if (within && breaks_own_rule(function, x[0])) s = DUET_BAD_SHAPE;
        else if (rule && (!within || is_own || is_general(text, rule + 3, arity, x[0])))
            fail(s, "%s", rule + 3);
        else fail(s, "%s%s", is_call ? "in " : "", text);
    }
    fail_in_call(s, function, arity, x);
    return failed(a, 1, &n, s, site);
}

duet_expr composed_failed(const char *function, int arity, const duet_expr e[], duet_expr made,
                          const char *site)
{
    return name_again(function, arity, e, made, site, true);
}

duet_expr formula_within(const char *function, int arity, const duet_expr e[], duet_expr made,
                         const char *site)
{
    return composed(function, arity, e, made, site);
}

static bool is_failed(duet_expr e)
{
    const arena *a = arena_here();
    const node *n = a ? arena_look(a, e.serial) : NULL;
    return n && n->flags & NODE_FAILED;
}

duet_expr formula_called(const char *function, int arity, const duet_expr e[], duet_expr made,
                         const char *site)
{
    return unlikely(is_failed(made)) ? name_again(function, arity, e, made, site, false) : made;
}
