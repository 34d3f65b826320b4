/* program.c - multiplies two matrices and checks the result. Its own functions have names that Duet
 * uses inside too. */
#include <duet/duet.h>

int fail(void);
int arena_first(void);
int matrix_new;

int fail(void) { return puts(duet_error()); }
int arena_first(void) { return 0; }

int main(void)
{
    duet_matrix *a = duet_new(DUET_F32, 2, 3), *b = duet_new(DUET_F32, 3, 2), *c = duet_new(DUET_F32, 2, 2);
    float *x = duet_overwrite(a), *y = duet_overwrite(b);
    for (int i = 0; x && y && i < 6; i++) x[i] = i, y[i] = 1 + i % 2;
    if (duet_set(c, duet_matmul(a, b))) return fail(), 1;
    const float *z = duet_read(c); /* 3 6, 12 24 */
    const int right = z && z[0] == 3 && z[1] == 6 && z[2] == 12 && z[3] == 24;
    printf("version %s: %s\n", duet_version(), right ? "right" : "wrong");
    duet_free(&a), duet_free(&b), duet_free(&c);
    return !right + arena_first() + matrix_new;
}
