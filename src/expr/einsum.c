/* einsum.c - reads the index text of duet_einsum. */
#include "einsum.h"
#include "arena.h"

/* Reads letters and spaces, and returns the position after them; NULL: too many letters. */
static const char *read_part(const char *p, int part, einsum_attributes *e)
{
    int axis = 0;
    for (; *p == ' ' || (*p >= 'a' && *p <= 'z'); p++) {
        if (*p == ' ') continue;
        if (axis == EINSUM_AXES) return NULL;
        einsum_put(e, part, axis++, *p - 'a' + 1);
    }
    return p;
}

/* Does a letter occur twice in one part? */
static bool repeats(const einsum_attributes *e, int part)
{
    for (int axis = 0; einsum_letter(e, part, axis); axis++)
        if (einsum_axis(e, part, einsum_letter(e, part, axis)) != axis) return true;
    return false;
}

/* Does each letter of `part` occur in one of two other parts? */
static bool within(const einsum_attributes *e, int part, int one, int other)
{
    for (int axis = 0, letter; (letter = einsum_letter(e, part, axis)); axis++)
        if (einsum_axis(e, one, letter) < 0 && einsum_axis(e, other, letter) < 0) return false;
    return true;
}

static bool is_product(const einsum_attributes *e)
{
    return !repeats(e, EINSUM_A) && !repeats(e, EINSUM_B) && !repeats(e, EINSUM_OUT) &&
           within(e, EINSUM_OUT, EINSUM_A, EINSUM_B) && within(e, EINSUM_A, EINSUM_B, EINSUM_OUT) &&
           within(e, EINSUM_B, EINSUM_A, EINSUM_OUT);
}

const int32_t *einsum_read(const char *text, einsum_attributes *e)
{
    *e = (einsum_attributes){ { 0 } };
    const char *p = text ? read_part(text, EINSUM_A, e) : NULL;
    p = p && *p == ',' ? read_part(p + 1, EINSUM_B, e) : NULL;
    p = p && p[0] == '-' && p[1] == '>' ? read_part(p + 2, EINSUM_OUT, e) : NULL;
    if (!p || *p || !is_product(e)) e->letters[0] = EINSUM_INVALID;
    return e->letters;
}
