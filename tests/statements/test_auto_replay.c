/* test_auto_replay.c - automatic replay against execution statement by statement. Random programs,
 * each a loop with arbitrary events between statements, run twice from the same generator, without
 * and with automatic replay. All that the host reads must have equal bits, and every status must be
 * equal.
 *
 *     test_auto_replay [programs] [seed] */
#include "auto_replay.h"
#include "common.h"
#include "in_thread.h"
#include "modes.h"
#include "random_program.h"

enum { N = 16, LENGTH = 8, TURNS = 24 };

static rng gen;

static int below(int n) { return (int)rng_below(&gen, n); }

/* ---- what a program has observed ---- */

typedef struct seen {
    float *seen;
    size_t count, room;
} seen;

static void see(seen *log, const float *v, int64_t n)
{
    if (log->count + (size_t)n > log->room) {
        log->room = 2 * (log->room + (size_t)n);
        log->seen = realloc(log->seen, log->room * sizeof *log->seen);
    }
    memcpy(log->seen + log->count, v, (size_t)n * sizeof *v);
    log->count += (size_t)n;
}

static void see_status(seen *log, duet_status s) { see(log, &(float){ (float)s }, 1); }

static void see_matrix(seen *log, const duet_matrix *m)
{
    float *v = elements(m);
    if (!CHECK(v, "%s", duet_error())) return;
    see(log, v, duet_count(m));
    free(v);
}

/* ---- the matrices of a program ---- */

typedef struct matrix_set {
    duet_matrix *m[MATRICES];
    seen log;
} matrix_set;

static void fill(matrix_set *w, int k)
{
    float *p = duet_overwrite(w->m[k]);
    if (!CHECK(p, "%s", duet_error())) return;
    for (int64_t i = 0; i < duet_count(w->m[k]); i++) p[i] = (float)rng_real(&gen, -1, 1);
}

static matrix_set new_matrix_set(void)
{
    matrix_set w = { 0 };
    new_matrices(w.m, N);
    for (int k = 0; k <= NUMBER; k++) fill(&w, k);
    return w;
}

/* Makes a square matrix again; views of the old one live on and are made again too. */
static void renew(matrix_set *w, int k)
{
    duet_free(&w->m[k]);
    w->m[k] = duet_new(DUET_F32, N, N);
    duet_free(&w->m[PART]);
    duet_free(&w->m[TURNED]);
    new_views(w->m);
    if (below(2)) fill(w, k);
}

/* ---- the lines of a program ---- */

enum {
    NUMBERS = LINES,
    STATEMENTS_,
    LOTS = STATEMENTS_,
    READ_,
    OVERWRITE_,
    UPDATE_,
    WAIT_,
    RENEW_,
    CPU_,
    TRIM_,
    FUSION_,
    WRONG_,
    REPLAY_,
    POINTER_,
    KINDS
};

static line new_line(int kind, duet_place where)
{
    return (line){ kind, below(SQUARES), below(SQUARES), below(SQUARES), SQUARES + below(ROWS), where };
}

static duet_status state(const matrix_set *w, const line *l, int turn)
{
    duet_matrix *const *m = w->m, *to = m[l->to], *x = m[l->x], *y = m[l->y], *row = m[l->row];
    switch (l->kind) {
    case NUMBERS: return duet_set(to, duet_sub(duet_mul(x, turn % 5 ? 0.5 : 0.25), y));
    case LOTS: return duet_random_uniform(to, 7, -1, 1);
    case CPU_: return duet_set_on(DUET_CPU, to, duet_mul(x, 0.5));
    case WRONG_: return duet_set(row, duet_add(x, y)); /* shapes that do not fit together */
    default: return run_line(m, l);
    }
}

static void replay(const matrix_set *w, const line *l)
{
    duet_status s = duet_record_begin();
    if (s == DUET_OK) s = state(w, &(line){ SUM, l->to, l->x, l->y, l->row, l->where }, 0);
    duet_recording *r = duet_record_end();
    CHECK(s == DUET_OK && r && duet_replay(r) == DUET_OK, "%s", duet_error());
    duet_recording_free(&r);
}

static void perform(matrix_set *w, const line *l, int turn)
{
    duet_matrix *m = w->m[below(8) ? l->to : l->row];
    float *p;
    switch (l->kind) {
    case READ_: see_matrix(&w->log, m); break;
    case OVERWRITE_: fill(w, l->to); break;
    case UPDATE_:
        if (CHECK(p = duet_update(m), "%s", duet_error())) p[3] += 0.5f;
        break;
    case WAIT_: see_status(&w->log, duet_synchronize()); break;
    case RENEW_: renew(w, l->to); break;
    case TRIM_: duet_memory_trim(); break;
    case FUSION_: plan_fusion(below(2) ? MODE_MACHINE : MODE_NONE); break;
    case REPLAY_: replay(w, l); break;
    case POINTER_: CHECK(duet_device_read(m), "%s", duet_error()); break;
    default: DUET_ON(l->where) see_status(&w->log, state(w, l, turn));
    }
}

/* ---- programs ------------------------------------------------------------------------------------------ */

typedef struct loop {
    line line[LENGTH + 3];
    int count;
    line seldom; /* executed in one of `of` turns */
    int of;
} loop;

static duet_place some_place(void)
{
    if (below(5)) return DUET_GPU;
    if (below(2)) return DUET_AUTO;
    return DUET_CPU;
}

static loop new_loop(void)
{
    loop p = { .count = 1 + below(LENGTH), .of = 1 + below(12) };
    for (int i = 0; i < p.count; i++)
        p.line[i] = new_line(below(STATEMENTS_), below(6) ? DUET_GPU : some_place());
    for (int more = below(4); more > 0; more--) {
        line other = new_line(below(2) ? READ_ : (STATEMENTS_ + below(KINDS - STATEMENTS_)), DUET_GPU);
        if (other.kind == RENEW_ && below(4)) other.kind = OVERWRITE_;
        const int at = below(p.count + 1);
        memmove(&p.line[at + 1], &p.line[at], (size_t)(p.count - at) * sizeof *p.line);
        p.line[at] = other;
        p.count++;
    }
    p.seldom = new_line(below(KINDS), some_place());
    return p;
}

static void one_turn(matrix_set *w, const loop *p, int turn)
{
    for (int i = 0; i < p->count; i++) {
        if (!below(p->of * p->count)) perform(w, &p->seldom, turn);
        perform(w, &p->line[i], turn);
    }
}

/* Threads that use the same matrices in turn: what one defers, the next may need. */
typedef struct players {
    pthread_mutex_t lock;
    pthread_cond_t next;
    matrix_set *w;
    const loop *p;
    bool automatic;
    int count, turn;
} players;

typedef struct player {
    players *all;
    int number;
} player;

static void *take_turns(void *me)
{
    players *all = ((player *)me)->all;
    CHECK(duet_auto_replay(all->automatic) == DUET_OK, "%s", duet_error());
    for (int turn = ((player *)me)->number; turn < all->count * TURNS; turn += all->count) {
        pthread_mutex_lock(&all->lock);
        while (all->turn != turn) pthread_cond_wait(&all->next, &all->lock);
        one_turn(all->w, all->p, turn);
        all->turn++;
        pthread_cond_broadcast(&all->next);
        pthread_mutex_unlock(&all->lock);
    }
    return NULL;
}

static void play_turns(matrix_set *w, const loop *p, bool automatic, int threads)
{
    pthread_t t[3];
    player who[3];
    players all = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, w, p, automatic, threads, 0 };
    for (int i = 0; i < threads; i++) {
        who[i] = (player){ &all, i };
        pthread_create(&t[i], NULL, take_turns, &who[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
}

static seen play(const loop *p, bool automatic, int threads, uint64_t *repeats)
{
    const uint64_t before = duet_stats().repeats;
    CHECK(duet_auto_replay(automatic) == DUET_OK, "%s", duet_error());
    matrix_set w = new_matrix_set();
    if (threads > 1) play_turns(&w, p, automatic, threads);
    for (int turn = 0; turn < TURNS && threads == 1; turn++) one_turn(&w, p, turn);
    plan_fusion(MODE_MACHINE);
    for (int k = 0; k <= NUMBER; k++) see_matrix(&w.log, w.m[k]);
    free_matrices(w.m);
    *repeats += duet_stats().repeats - before;
    return w.log;
}

static bool same(const seen *a, const seen *b)
{
    return a->count == b->count && same_bits(DUET_F32, a->seen, b->seen, (int64_t)a->count);
}

static void print_program(const loop *p)
{
    printf("#");
    for (int i = 0; i < p->count; i++)
        printf(" %d(%d<-%d,%d,%d@%d)", (int)p->line[i].kind, p->line[i].to, p->line[i].x, p->line[i].y,
               p->line[i].row, (int)p->line[i].where);
    printf("; one in %d: %d\n", p->of, (int)p->seldom.kind);
}

static void one_program(int threads, uint64_t *repeats)
{
    uint64_t none = 0;
    const loop p = new_loop();
    const rng from = gen;
    seen a = play(&p, false, threads, &none);
    gen = from;
    seen b = play(&p, true, threads, repeats);
    if (!CHECK(same(&a, &b), "the results differ with automatic replay")) print_program(&p);
    CHECK(!none, "statements were replayed while automatic replay is off");
    free(a.seen);
    free(b.seen);
}

static void programs(int count, int threads, const char *name)
{
    uint64_t repeats = 0;
    for (int i = 0; i < count; i++) one_program(threads, &repeats);
    printf("# %d programs, %d statements replayed\n", count, (int)repeats);
    CHECK(repeats > (uint64_t)(10 * count), "%d statements replayed", (int)repeats);
    tap_point(name);
}

int main(int argc, char **argv)
{
    duet_place place[2];
    setenv("DUET_REPRODUCIBLE", "1", 1);
    auto_replay_set_max_seconds(1);
    gen = rng_new(argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
    if (list_places(place) < 2) {
        printf("ok %d - automatic replay # SKIP there is no GPU\n", ++tap_points);
        return tap_end();
    }
    const int count = trial_count(argc, argv, 60, 400);
    programs(count, 1, "random programs see the same with automatic replay");
    programs(count / 4, 2, "so do two threads in turn");
    programs(count / 4, 3, "and three");
    return tap_end();
}
