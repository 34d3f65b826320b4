/* fuzz_einsum.c - the fuzz target of the indices of duet_einsum. The first two bytes choose the shapes of
 * the operands, the other bytes are the text. */
#include "fuzz.h"
#include <string.h>

/* Two bits for the rank, from 1 to 4, then a bit for each size, 2 or 3. */
static duet_matrix *operand(uint8_t shape)
{
    int64_t size[4];
    for (int a = 0; a < 4; a++) size[a] = 2 + (shape >> (2 + a) & 1);
    duet_matrix *m = duet_new_shape(shape & 64 ? DUET_F64 : DUET_F32, 1 + (shape & 3), size);
    expect(m != NULL, "an operand could not be made");
    return m;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char text[100];
    if (size < 2) return 0;
    const size_t length = size - 2 < sizeof text ? size - 2 : sizeof text - 1;
    memcpy(text, bytes + 2, length);
    text[length] = 0;
    duet_matrix *x = operand(bytes[0]), *y = operand(bytes[1]), *z = duet_eval(duet_einsum(x, y, text));
    expect(z || *duet_error(), "a failure without an error text");
    duet_free(&x);
    duet_free(&y);
    duet_free(&z);
    return 0;
}
