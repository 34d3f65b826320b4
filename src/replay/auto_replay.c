/* auto_replay.c - automatic replay. It watches the statements of a thread on the GPU until they
 * repeat, records a period of them, and then launches each repetition as CUDA graphs.
 *
 * Watching. For each statement that runs, the period detector gets a token and a detail. The token
 * is a hash of the plan and the matrices, the detail a hash of the numbers. When the host waits for
 * the queue or gives it other work, the detector gets the token BOUNDARY: statements are never
 * deferred across a boundary. If the tokens have equalled those of one period before for two
 * periods, the period is expected to continue.
 *
 * Learning. The statements of the next period are recorded as they run. Each part between two
 * boundaries becomes one captured sequence. A statement whose numbers vary from period to period is
 * not recorded, and ends a part. So does one with large temporaries, which a sequence would keep.
 *
 * Following. When a statement begins a captured sequence, it is deferred, and so are the following
 * statements as long as they match. The last one launches the whole sequence as a graph. If another
 * statement comes, or if somebody needs the results earlier, the deferred statements are launched
 * one by one. A sequence that is interrupted too often, or whose statements arrive so slowly that
 * deferring costs more than it saves, is dropped, and its period is not learnt again. */
#include "auto_replay.h"
#include "captured_sequence.h"
#include "clock.h"
#include "compiler.h"
#include "device_use.h"
#include "period_detector.h"
#include "status.h"
#include "thread.h"
#include "trace.h"
#include <stdlib.h>
#include <string.h>

#define BOUNDARY      1  /* the tokens of statements are larger */
#define MIN_TOKENS    8  /* tokens that must have repeated, even if the period is shorter */
#define MAX_SEQUENCES 16 /* per thread */
#define MAX_REJECTED  16 /* periods remembered as not worth learning */
#define CREDIT        8  /* the credit of a new sequence */
#define CREDIT_MAX    32
#define PENALTY       4 /* lost when a sequence was of no use; otherwise it gains 1 */

typedef struct auto_replayer {
    period_detector detector;
    uint64_t rejected[MAX_REJECTED];
    unsigned n_rejected;
    int tokens_left;             /* tokens of the period still to be learnt; 0: not learning */
    bool waiting;                /* learning begins after the next boundary or varying statement */
    bool learned_any;            /* a sequence of this period was recorded */
    captured_sequence *learning; /* the sequence being recorded, or NULL */
    captured_sequence *sequences[MAX_SEQUENCES];
    uint64_t use_count;
    captured_sequence *current;       /* the sequence being followed, or NULL */
    int position;                     /* index of its next statement */
    double started;                   /* when its first statement was deferred */
    captured_sequence *last_followed; /* it is likely to come again */
} auto_replayer;

/* The longest time that the statements of a sequence may take to arrive, for each launch in it.
 * Beyond that, deferring does not pay off. */
static double max_seconds_per_launch = 5e-6;

void auto_replay_set_max_seconds(double seconds) { max_seconds_per_launch = seconds; }

static duet_status launch_own(void) { return deferred_launch(1ull << thread_get()->queue); }

/* ---- tokens ---- */

static uint64_t mix(uint64_t h, uint64_t w)
{
    const __uint128_t m = (__uint128_t)(h ^ w) * 0xd6e8feb86659fd93u;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static uint64_t mix_number(uint64_t h, double x)
{
    uint64_t w;
    memcpy(&w, &x, sizeof w);
    return mix(h, w);
}

static uint64_t token_of(const plan *p, const statement *s)
{
    uint64_t h = p->number;
    for (int k = 0; k < s->count; k++) h = mix(h, s->to[k].m->serial);
    for (int i = 0; i < p->n_leaves; i++) h = mix(h, s->f->nodes[p->leaves[i].node].matrix_serial);
    return h | 2;
}

static uint64_t detail_of(const plan *p, const statement *s)
{
    uint64_t h = 0;
    for (int i = 0; i < p->n_numbers; i++)
        if (p->numbers[i].node >= 0) h = mix_number(h, s->f->nodes[p->numbers[i].node].number);
    return h;
}

/* ---- the sequences of a thread ---- */

static void forget(auto_replayer *a, captured_sequence *r)
{
    for (int i = 0; i < MAX_SEQUENCES; i++)
        if (a->sequences[i] == r) a->sequences[i] = NULL;
    if (a->last_followed == r) a->last_followed = NULL;
    sequence_free(r);
}

/* Returns whether there were any. */
static bool forget_all(auto_replayer *a)
{
    bool any = a->learning != NULL;
    for (int i = 0; i < MAX_SEQUENCES; i++) {
        any |= a->sequences[i] != NULL;
        sequence_free(a->sequences[i]);
        a->sequences[i] = NULL;
    }
    sequence_free(a->learning);
    a->learning = a->last_followed = a->current = NULL;
    a->position = a->tokens_left = 0;
    return any;
}

static int least_recently_used(const auto_replayer *a)
{
    int best = 0;
    for (int i = 0; i < MAX_SEQUENCES; i++) {
        if (!a->sequences[i]) return i;
        if (a->sequences[i]->last_use < a->sequences[best]->last_use) best = i;
    }
    return best;
}

static void add_sequence(auto_replayer *a, captured_sequence *r)
{
    const int i = least_recently_used(a);
    if (a->sequences[i]) forget(a, a->sequences[i]);
    a->sequences[i] = r;
    r->last_use = ++a->use_count;
    r->credit = CREDIT;
}

static void reject(auto_replayer *a, uint64_t period)
{
    a->rejected[a->n_rejected++ % MAX_REJECTED] = period;
}

static bool is_rejected(const auto_replayer *a, uint64_t period)
{
    for (int i = 0; i < MAX_REJECTED; i++)
        if (a->rejected[i] == period) return true;
    return false;
}

/* ---- learning ---- */

/* If a period has been repeated often enough, learn it: from here on, or from the next boundary. */
static void begin_learning(auto_replayer *a)
{
    period_detector *h = &a->detector;
    if (h->run < 2 * h->period || h->run < MIN_TOKENS) return;
    h->run = 0;
    if (is_rejected(a, period_hash(h))) return;
    a->tokens_left = h->period;
    a->waiting = period_contains(h, BOUNDARY) || period_details_vary(h);
    a->learned_any = false;
}

static void end_learning(auto_replayer *a)
{
    sequence_free(a->learning);
    a->learning = NULL;
    a->tokens_left = 0;
    a->detector.run = 0;
}

static void end_part(auto_replayer *a)
{
    captured_sequence *r = a->learning;
    a->learning = NULL;
    if (!r) return;
    r->period = period_hash(&a->detector);
    if (sequence_close(r)) {
        TRACE("%d statements repeat: from now on they are launched together", r->recording.count);
        add_sequence(a, r);
        a->learned_any = true;
    } else {
        sequence_free(r);
    }
}

static void count_token(auto_replayer *a)
{
    if (--a->tokens_left > 0) return;
    end_part(a);
    if (!a->learned_any) reject(a, period_hash(&a->detector));
    end_learning(a);
}

static void note_boundary(auto_replayer *a)
{
    if (period_last_token(&a->detector) == BOUNDARY) return;
    const bool expected = period_expects(&a->detector, BOUNDARY);
    period_add(&a->detector, BOUNDARY, 0);
    if (!a->tokens_left) return;
    if (!expected) end_learning(a);
    else if (a->waiting) a->waiting = false;
    else {
        end_part(a);
        count_token(a);
    }
}

/* Run a statement again after memory was freed. If the first attempt changed a matrix that the
 * second one needs, report the first failure. */
static __attribute__((cold)) duet_status run_again(const plan *p, const statement *s)
{
    error_text first;
    error_keep(&first);
    const duet_status st = plan_run(p, s);
    if (st != DUET_UNKNOWN) return st;
    error_put_back(&first);
    return DUET_NO_MEMORY;
}

/* Before a statement fails for lack of memory, free the memory of all sequences and try again. */
static duet_status run_at_once(auto_replayer *a, const plan *p, const statement *s)
{
    const unsigned failures = deferred_failures();
    const duet_status st = plan_run(p, s);
    if (likely(st != DUET_NO_MEMORY) || failures != deferred_failures()) return st;
    if (forget_all(a)) return run_again(p, s);
    return st;
}

static duet_status learn(auto_replayer *a, uint64_t token, const plan *p, const statement *s)
{
    bool added = false;
    if (!period_detail_repeats(&a->detector) || !sequence_takes(p)) {
        end_part(a);
        count_token(a);
        return run_at_once(a, p, s);
    }
    if (!a->learning && (a->learning = sequence_new())) a->learning->first_token = token;
    if (!a->learning) {
        end_learning(a);
        return plan_run(p, s);
    }
    const unsigned failures = deferred_failures();
    const duet_status st = sequence_add(a->learning, p, s, &added);
    if (added) {
        count_token(a);
        return st;
    }
    end_learning(a);
    if (st != DUET_NO_MEMORY || failures != deferred_failures()) return st;
    forget_all(a);
    return run_again(p, s);
}

static duet_status watch(auto_replayer *a, const plan *p, const statement *s)
{
    const uint64_t token = token_of(p, s);
    const bool expected = period_expects(&a->detector, token);
    period_add(&a->detector, token, detail_of(p, s));
    if (a->tokens_left && !expected) end_learning(a);
    if (a->tokens_left && !a->waiting) return learn(a, token, p, s);
    if (!a->tokens_left) begin_learning(a);
    else if (!period_detail_repeats(&a->detector)) a->waiting = false;
    return run_at_once(a, p, s);
}

/* ---- following ---- */

/* Stop following the current sequence. */
static void stop_following(auto_replayer *a, bool useful)
{
    captured_sequence *r = a->current;
    a->last_followed = r;
    a->current = NULL;
    a->position = 0;
    r->credit += useful ? r->credit < CREDIT_MAX : -PENALTY;
    if (r->credit >= 0) return;
    TRACE("%d statements are not launched together any more", r->recording.count);
    reject(a, r->period);
    forget(a, r);
}

static duet_status break_off(auto_replayer *a)
{
    const duet_status s = launch_own();
    stop_following(a, false);
    note_boundary(a);
    return s;
}

/* A matrix of the sequence has a new address, so the sequence can never run again. Or elements of a
 * destination are lost, which is rare. */
static duet_status drop_moved(auto_replayer *a)
{
    captured_sequence *r = a->current;
    const duet_status s = launch_own();
    a->current = NULL;
    a->position = 0;
    forget(a, r);
    return s;
}

static duet_status complete(auto_replayer *a)
{
    captured_sequence *r = a->current;
    const duet_status s = launch_own();
    r->last_use = ++a->use_count;
    const double limit = max_seconds_per_launch * (double)r->segment.launches;
    stop_following(a, !r->interrupted && !(clock_now() - a->started > limit));
    return s;
}

/* The sequence that begins with this statement: usually the one followed last. */
static captured_sequence *find(const auto_replayer *a, const plan *p, const statement *s)
{
    if (a->last_followed && sequence_has(a->last_followed, 0, p, s)) return a->last_followed;
    const uint64_t token = token_of(p, s);
    for (int i = 0; i < MAX_SEQUENCES; i++) {
        captured_sequence *r = a->sequences[i];
        if (r && r->first_token == token && sequence_has(r, 0, p, s)) return r;
    }
    return NULL;
}

static bool begin_following(auto_replayer *a, const plan *p, const statement *s)
{
    a->current = a->tokens_left ? NULL : find(a, p, s);
    if (a->current && segment_is_outdated(&a->current->segment)) {
        forget(a, a->current); /* it will be learnt again */
        a->current = NULL;
    }
    if (!a->current) return false;
    a->started = clock_now();
    note_boundary(a);
    return true;
}

/* *deferred: the statement was deferred. Otherwise the caller must run it. */
static duet_status follow(auto_replayer *a, const statement *s, bool *deferred)
{
    TRY(sequence_defer(a->current, a->position, s, deferred));
    if (!*deferred) return drop_moved(a);
    if (++a->position < a->current->recording.count) return DUET_OK;
    return complete(a);
}

/* ---- running statements ---- */

static void thread_exit(void *mine)
{
    USE_GPUS;
    deferred_launch_or_lose(1ull << thread_get()->queue);
    forget_all(mine);
    free(mine);
}

static auto_replayer *thread_replayer(void)
{
    thread *t = thread_get();
    if (!t->deferring || t->shared) return NULL;
    if (t->slot[SLOT_REPEATS]) return t->slot[SLOT_REPEATS];
    t->leave[SLOT_REPEATS] = thread_exit;
    return t->slot[SLOT_REPEATS] = calloc(1, sizeof(auto_replayer));
}

/* A boundary within a statement that was deferred, for example because its operand needed memory, launched
 * only the statements before it. So the statement itself is launched here. */
static duet_status handle_boundary(auto_replayer *a)
{
    duet_status s = DUET_OK;
    thread_get()->host_waited = false;
    if (a->current) {
        s = launch_own();
        stop_following(a, a->position == 0);
    }
    note_boundary(a);
    return s;
}

static duet_status run_or_defer(auto_replayer *a, const plan *p, const statement *s, bool *own)
{
    bool deferred = false;
    *own = false;
    if (thread_get()->host_waited) TRY(handle_boundary(a));
    if (a->current && !sequence_has(a->current, a->position, p, s)) TRY(break_off(a));
    if (a->current || begin_following(a, p, s)) TRY(follow(a, s, &deferred));
    *own = true;
    if (deferred) return DUET_OK;
    return watch(a, p, s);
}

duet_status auto_replay_run(const plan *p, const statement *s, bool *own)
{
    auto_replayer *a = thread_replayer();
    *own = false;
    if (!p->count) return DUET_OK;
    USE_GPUS;
    if (likely(a != NULL)) return run_or_defer(a, p, s, own);
    TRY(deferred_flush());
    *own = true;
    return plan_run(p, s);
}

duet_status(duet_auto_replay)(int on)
{
    thread *t = thread_get();
    if (on != 0 && on != 1) return fail(DUET_BAD_ARGUMENT, "duet_auto_replay: on (%d) must be 0 or 1", on);
    const duet_status s = deferred_flush();
    if (!on && t->slot[SLOT_REPEATS]) forget_all(t->slot[SLOT_REPEATS]);
    t->deferring = on ? DEFERS_ALWAYS : DEFERS_NOT;
    return s;
}
