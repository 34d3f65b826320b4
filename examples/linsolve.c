/* linsolve.c - solves a dense system of linear equations and a least-squares problem.
 *
 * It follows Listing 13 of the NT2 paper (see tie.c). The system is solved in f64, and then by
 * factorising its matrix in f32, which can be faster, and refining the solution to the accuracy of f64.
 *
 *     linsolve [n] */
#include <duet/duet.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int failed(void)
{
    fprintf(stderr, "%s\n", duet_error());
    return 1;
}

/* Returns |b - A x| / |b|, or -1 on failure. r is a buffer of b's shape, n one of rank 0. */
static double residual(duet_matrix *A, duet_matrix *x, duet_matrix *b, duet_matrix *r, duet_matrix *n)
{
    if (duet_set_all({ r, duet_sub(b, duet_matmul(A, x)) }, { n, duet_div(duet_norm(r), duet_norm(b)) }))
        return -1;
    const double *p = duet_read(n);
    if (p) return *p;
    return -1;
}

static int solve(const char *how, int refine, duet_matrix *A, duet_matrix *x, duet_matrix *b, duet_matrix *r,
                 duet_matrix *n)
{
    double seconds = 0;
    for (int turn = 0; turn < 2; turn++) { /* the first turn loads the vendor libraries */
        const double start = now();
        if (duet_set(x, duet_solve(A, b, .refine = refine)) || duet_synchronize()) return failed();
        seconds = now() - start;
    }
    const double left = residual(A, x, b, r, n);
    printf("%-16s %8.1f ms, |b - A x| / |b| = %.1e\n", how, seconds * 1e3, left);
    return !(left >= 0 && left < 1e-10);
}

int main(int argc, char **argv)
{
    const int64_t n = argc > 1 ? atoi(argv[1]) : 300, tall = 2 * n;
    duet_matrix *A = duet_new(DUET_F64, n, n), *b = duet_new(DUET_F64, n), *x = duet_new(DUET_F64, n),
                *r = duet_new(DUET_F64, n);
    duet_matrix *T = duet_new(DUET_F64, tall, n), *c = duet_new(DUET_F64, tall), *g = duet_new(DUET_F64, n),
                *number = duet_new(DUET_F64);
    int bad = duet_random_uniform(A, 1, -1, 1) || duet_random_uniform(b, 2, -1, 1) ||
              duet_random_uniform(T, 3, -1, 1) || duet_random_uniform(c, 4, -1, 1);
    if (bad) return failed();

    bad = solve("in f64", 0, A, x, b, r, number) ||
          solve("refined from f32", DUET_REFINE_F32, A, x, b, r, number);

    /* The residual c - T x of the least-squares solution is orthogonal to the columns of T. */
    if (!bad && (duet_set(x, duet_lstsq(T, c)) ||
                 duet_set(g, duet_matmul(duet_transpose(T), duet_sub(c, duet_matmul(T, x)))) ||
                 duet_set(number, duet_norm(g))))
        return failed();
    const double *left = bad ? NULL : duet_read(number);
    if (left) printf("least squares    |T^T (c - T x)| = %.1e\n", *left);
    duet_matrix **all[] = { &A, &b, &x, &r, &T, &c, &g, &number };
    for (int i = 0; i < 8; i++) duet_free(all[i]);
    return bad || !left;
}
