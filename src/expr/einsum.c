/* einsum.c - what duet_einsum is asked for, read from its text; and what it is the long form of. */
#include "einsum.h"
#include "operands.h"
#include "status.h"

/* Letters up to what ends them; NULL: something else, or too many. */
static const char *read_part(const char *p, int part, int32_t *attr)
{
    int axis = 0;
    for (; *p == ' ' || (*p >= 'a' && *p <= 'z'); p++) {
        if (*p == ' ') continue;
        if (axis == EINSUM_AXES) return NULL;
        einsum_put(attr, part, axis++, *p - 'a' + 1);
    }
    return p;
}

/* Is a letter twice in one part? */
static bool repeats(const int32_t *attr, int part)
{
    for (int axis = 0; einsum_letter(attr, part, axis); axis++)
        if (einsum_axis(attr, part, einsum_letter(attr, part, axis)) != axis) return true;
    return false;
}

/* Is each letter of `part` in one of two others? */
static bool within(const int32_t *attr, int part, int one, int other)
{
    for (int axis = 0, letter; (letter = einsum_letter(attr, part, axis)); axis++)
        if (einsum_axis(attr, one, letter) < 0 && einsum_axis(attr, other, letter) < 0) return false;
    return true;
}

static bool is_product(const int32_t *attr)
{
    return !repeats(attr, EINSUM_A) && !repeats(attr, EINSUM_B) && !repeats(attr, EINSUM_OUT) &&
           within(attr, EINSUM_OUT, EINSUM_A, EINSUM_B) && within(attr, EINSUM_A, EINSUM_B, EINSUM_OUT) &&
           within(attr, EINSUM_B, EINSUM_A, EINSUM_OUT);
}

const int32_t *einsum_read(const char *text, int32_t attr[EINSUM_WORDS])
{
    memset(attr, 0, EINSUM_WORDS * sizeof *attr);
    const char *p = text ? read_part(text, EINSUM_A, attr) : NULL;
    p = p && *p == ',' ? read_part(p + 1, EINSUM_B, attr) : NULL;
    p = p && p[0] == '-' && p[1] == '>' ? read_part(p + 2, EINSUM_OUT, attr) : NULL;
    if (!p || *p || !is_product(attr)) attr[0] = -1;
    return attr;
}

duet_expr duet_outer_at(duet_expr x, duet_expr y, const char *site)
{
    return duet_einsum_at(x, y, "i,j->ij", site);
}
duet_expr(duet_outer)(duet_expr x, duet_expr y) { return duet_outer_at(x, y, NULL); }
