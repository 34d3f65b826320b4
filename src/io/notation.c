/* notation.c - converts elements to text as NumPy prints them: it chooses between fixed-point and
 * scientific notation, and the widths and digits of a column. */
#include "min_max.h"
#include "print_matrix.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PRECISION 8 /* the most digits after the decimal point */

/* ---- one number ---- */

/* Removes trailing zeros. */
static void trim(char *text)
{
    size_t n = strlen(text);
    while (n && text[n - 1] == '0') text[--n] = 0;
}

/* Fixed-point notation, such as "-12.5" and "3.", with at most `most` digits after the point. Writes fewer
 * digits if they identify x. */
static void plain_text(duet_dtype type, double x, int most, char text[WORD])
{
    char probe[40];
    const int digits = shortest_digits(type, x);
    snprintf(probe, sizeof probe, "%.*e", digits - 1, x);
    const int power = x != 0 ? atoi(strchr(probe, 'e') + 1) : 0, behind = digits - 1 - power;
    if (behind >= 0 || x == 0) {
        snprintf(text, WORD, "%#.*f", (int)clamp(behind, 0, most), x);
    } else { /* digits that do not identify x are zeros */
        snprintf(text, WORD, "%#.0f", strtod(probe, NULL));
    }
    if (strchr(text, '.')) trim(text);
}

/* Scientific notation, such as "-1.25e-10", with as many digits after the point as identify x, from
 * `least` to `most`. The exponent has at least `exponent` digits, and at least two. */
static void power_text(duet_dtype type, double x, int least, int most, int exponent, char text[WORD])
{
    const int digits = (int)larger(least, smaller(shortest_digits(type, x) - 1, most));
    snprintf(text, WORD, "%#.*e", digits, x);
    char *e = strchr(text, 'e');
    const int power = atoi(e + 1), size = (int)clamp(exponent, 2, 4);
    *e = 0;
    if (!least) trim(text);
    snprintf(text + strlen(text), 20, "e%c%0*d", power < 0 ? '-' : '+', size, abs(power));
}

static void special_text(double x, char text[WORD])
{
    const char *infinity = x < 0 ? "-inf" : "inf";
    strcpy(text, isnan(x) ? "nan" : infinity);
}

static void add_sign(const column *c, char text[WORD])
{
    if (!c->signs || *text == '-') return;
    memmove(text + 1, text, strlen(text) + 1);
    *text = '+';
}

/* ---- a column ---- */

static void grow(int *to, size_t n)
{
    if (*to < (int)n) *to = (int)n;
}

static void column_sees(column *c, double x)
{
    char text[WORD];
    if (!isfinite(x)) {
        c->infinite = true;
        c->below |= isinf(x) && x < 0;
        return;
    }
    c->finite = true;
    const double size = fabs(x);
    if (size > 0 && size < c->least) c->least = size;
    if (size > c->most) c->most = size;
    power_text(c->type, x, 0, PRECISION, 0, text);
    add_sign(c, text);
    const char *point = strchr(text, '.'), *e = strchr(text, 'e');
    grow(&c->scientific[0], (size_t)(point - text));
    grow(&c->scientific[1], (size_t)(e - point - 1));
    grow(&c->scientific[2], strlen(e + 2));
    if (size >= 1e16) return; /* never printed in fixed-point notation */
    plain_text(c->type, x, PRECISION, text);
    add_sign(c, text);
    point = strchr(text, '.');
    grow(&c->plain[0], (size_t)(point - text));
    grow(&c->plain[1], strlen(point + 1));
}

/* From this number on, fixed-point notation needs more digits than the type has. */
static double beyond_digits(duet_dtype type) { return pow(10, floor(-log10(2 * dtypes[type].roundoff))); }

/* Is scientific notation used? It is for numbers beyond the digits of the type or below 0.0001, and if the
 * largest one is more than 1000 times the smallest one. */
static bool wants_powers(const column *c)
{
    bool small = c->least<0.0001, wide = c->most / c->least> 1000;
    if (c->type == DUET_F32) {
        small = (float)c->least < 0.0001f;
        wide = (float)c->most / (float)c->least > 1000;
    }
    return c->most > 0 && (c->most >= fmin(beyond_digits(c->type), 1e8) || small || wide);
}

/* The number of characters from the point to the end. */
static int characters_behind(const column *c)
{
    const int digits = c->right + 1;
    return c->powers ? c->power + 2 + digits : digits;
}

static void column_settle(column *c)
{
    c->powers = wants_powers(c);
    const int *width = c->powers ? c->scientific : c->plain;
    c->left = width[0];
    c->right = width[1];
    c->power = c->scientific[2];
    if (!c->infinite) return;
    const int behind = characters_behind(c);
    grow(&c->left, (size_t)larger(3 - behind, 0));
    if (c->signs || c->below) grow(&c->left, (size_t)larger(4 - behind, 0));
}

static void column_text(const column *c, double x, char text[WORD])
{
    char word[WORD];
    if (!isfinite(x)) special_text(x, word);
    else if (c->powers) power_text(c->type, x, c->right, c->right, c->power, word);
    else plain_text(c->type, x, PRECISION, word);
    add_sign(c, word);
    const int behind = characters_behind(c);
    const char *point = strchr(word, '.');
    const int lead = point ? c->left - (int)(point - word) : c->left + behind - (int)strlen(word);
    snprintf(text, WORD, "%*s%-*s", (int)larger(lead, 0), "", point ? (int)(point - word) + behind : 0, word);
}

/* ---- an element ---- */

static const void *part_of(duet_dtype type, const void *element, int k)
{
    return (const char *)element + (size_t)k * dtypes[type_of_part(type)].bytes;
}

notation notation_new(duet_dtype type)
{
    const column c = { .type = type_of_part(type), .least = INFINITY };
    notation n = { .type = type, .part = { c, c } };
    n.part[1].signs = true;
    return n;
}

void notation_sees(notation *n, const void *element)
{
    char text[32];
    const bool complex = type_is_complex(n->type);
    if (n->type == DUET_BOOL) n->width = 5;
    else if (!complex && !type_is_float(n->type))
        grow(&n->width, strlen(integer_text(n->type, element, text)));
    else
        for (int k = 0; k <= complex; k++)
            column_sees(&n->part[k], number_of(n->part[k].type, part_of(n->type, element, k)));
}

void notation_settle(notation *n)
{
    for (int k = 0; k < 2; k++) column_settle(&n->part[k]);
}

/* j follows the digits without a space. */
static char *complex_text(const notation *n, const void *element, char text[WORD])
{
    char real[WORD], imag[WORD];
    column_text(&n->part[0], number_of(n->part[0].type, element), real);
    column_text(&n->part[1], number_of(n->part[1].type, part_of(n->type, element, 1)), imag);
    size_t end = strlen(imag);
    while (end && imag[end - 1] == ' ') end--;
    snprintf(text, WORD, "%.150s%.*sj%.100s", real, (int)end, imag, imag + end);
    return text;
}

/* The text of an integer or a bool. digits: a buffer for the text. */
static const char *exact_text(duet_dtype type, const void *element, char digits[32])
{
    if (type != DUET_BOOL) return integer_text(type, element, digits);
    return *(const char *)element ? "True" : "False";
}

char *notation_text(const notation *n, const void *element, char text[WORD])
{
    char digits[32];
    if (type_is_complex(n->type)) return complex_text(n, element, text);
    if (type_is_float(n->type)) {
        column_text(&n->part[0], number_of(n->type, element), text);
        return text;
    }
    snprintf(text, WORD, "%*s", n->width, exact_text(n->type, element, digits));
    return text;
}

/* ---- the element of a matrix of rank 0 ---- */

static void number_alone(duet_dtype type, double x, bool point, bool signs, char text[WORD])
{
    const column c = { .type = type, .signs = signs };
    const double beyond = type == DUET_F64 ? 1e16 : beyond_digits(type);
    if (!isfinite(x)) special_text(x, text);
    else if (x == 0 || (fabs(x) >= 1e-4 && fabs(x) < beyond)) {
        plain_text(type, x, 400, text);
        strcat(text, point && text[strlen(text) - 1] == '.' ? "0" : "");
    } else power_text(type, x, 0, 17, 0, text);
    char *bare = strstr(text, ".e");
    if (bare) memmove(bare, bare + 1, strlen(bare));
    else if (*text && text[strlen(text) - 1] == '.') text[strlen(text) - 1] = 0;
    add_sign(&c, text);
}

char *alone_text(duet_dtype type, const void *element, char text[WORD])
{
    char digits[32], real[WORD] = "", imag[WORD];
    const double x =
        type_is_complex(type) || type_is_float(type) ? number_of(type_of_part(type), element) : 0;
    if (type_is_complex(type)) {
        const bool whole = x != 0 || signbit(x);
        if (whole) number_alone(type_of_part(type), x, false, false, real);
        number_alone(type_of_part(type), number_of(type_of_part(type), part_of(type, element, 1)), false,
                     whole, imag);
        snprintf(text, WORD, whole ? "(%.150s%.150sj)" : "%s%.150sj", real, imag);
    } else if (type_is_float(type)) {
        number_alone(type, x, true, false, text);
    } else {
        snprintf(text, WORD, "%s", exact_text(type, element, digits));
    }
    return text;
}
