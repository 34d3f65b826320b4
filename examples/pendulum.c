/* pendulum.c - finds the parameters of a differential equation from measurements: a damped pendulum,
 *
 *     x'' = -k sin(x) - c x'
 *
 * The formula of its path has all time steps, by the method of Heun, and duet_grad differentiates the error
 * of the path through them. */
#include <duet/duet.h>

enum { STEPS = 40, ROUNDS = 150 };
static const double dt = 0.1;

typedef struct state {
    duet_expr x, v;
} state;

static duet_expr force(state s, duet_expr k, duet_expr c)
{
    return duet_neg(duet_add(duet_mul(k, duet_sin(s.x)), duet_mul(c, s.v)));
}

static state next(state s, duet_expr k, duet_expr c)
{
    const duet_expr a = force(s, k, c);
    const state guess = { duet_add(s.x, duet_mul(dt, s.v)), duet_add(s.v, duet_mul(dt, a)) };
    const duet_expr mean_v = duet_mul(0.5, duet_add(s.v, guess.v)),
                    mean_a = duet_mul(0.5, duet_add(a, force(guess, k, c)));
    return (state){ duet_add(s.x, duet_mul(dt, mean_v)), duet_add(s.v, duet_mul(dt, mean_a)) };
}

/* The paths of several pendulums, which start at different angles: a row for each time step. */
static duet_expr path(const duet_matrix *start, const duet_matrix *k, const duet_matrix *c)
{
    state s = { DUET(start), duet_mul(0, start) };
    duet_expr all = duet_expand_dims(s.x, 0);
    for (int i = 0; i < STEPS; i++) {
        s = next(s, DUET(k), DUET(c));
        all = duet_concat(0, all, duet_expand_dims(s.x, 0));
    }
    if (duet_drop(s.v)) fprintf(stderr, "%s\n", duet_error()); /* nothing needs the last velocity */
    return all;
}

int main(void)
{
    duet_matrix *start = duet_linspace(DUET_F64, 0.5, 1.5, 5), *k = duet_full(DUET_F64, 4, 1),
                *c = duet_full(DUET_F64, 0.3, 1);
    duet_matrix *measured = duet_eval(path(start, k, c)), *loss = duet_new(DUET_F64, 1);
    duet_matrix *dk = duet_new(DUET_F64, 1), *dc = duet_new(DUET_F64, 1),
                *noise = duet_new(DUET_F64, STEPS + 1, 5);
    double found[2] = { 0, 0 };
    int failed = duet_random_normal(noise, 1, 0, 0.05) || duet_iadd(measured, noise) || duet_set(k, 3) ||
                 duet_set(c, 0.1);
    for (int round = 0; !failed && round < ROUNDS; round++) {
        const duet_expr e = duet_mse(path(start, k, c), measured);
        failed = duet_set_all({ loss, e }, { dk, duet_grad(e, k) }, { dc, duet_grad(e, c) },
                              { k, duet_sub(k, duet_mul(0.5, dk)) }, { c, duet_sub(c, duet_mul(0.1, dc)) });
        if (!failed && round % 50 == 0) failed = duet_print(stdout, "round", round, "loss", loss);
    }
    failed = failed || duet_item(DUET(k), &found[0]) || duet_item(DUET(c), &found[1]) ||
             duet_print(stdout, "k", k, "c", c);
    if (failed) fprintf(stderr, "%s\n", duet_error());
    duet_free(&start, &k, &c, &measured, &loss, &dk, &dc, &noise);
    return failed || !(found[0] > 3.8 && found[0] < 4.2 && found[1] > 0.2 && found[1] < 0.4) ||
           duet_live(stderr);
}
