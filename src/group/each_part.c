/* each_part.c - runs a statement without a formula on the parts of a matrix. */
#include "each_part.h"
#include "deferred.h"
#include "group_record.h"
#include "split_matrix.h"
#include "status.h"

typedef struct parted {
    duet_group *g;
    duet_matrix *m;
    part_work *work;
    void *context;
    uint64_t word;
    bool explains; /* the first rank of this process prints its plan instead of running it */
    bool ran;      /* the ranks have begun */
    group_call *call;
} parted;

/* A recording keeps the views of parts. */
static duet_status run_part(const parted *r, communicator *c, int index)
{
    part_runs at;
    duet_matrix *part = split_part(r->m, index, &at);
    duet_status s = part ? DUET_OK : fail(DUET_NO_MEMORY, "no memory");
    if (s == DUET_OK && part->count) s = r->work(r->context, part, &at);
    if (s == DUET_OK && r->call) record_next(s);
    const bool wrote = s == DUET_OK;
    if (!c->told && !r->explains) s = communicator_agree(c, s, r->word);
    if (wrote && s != DUET_OK) matrix_lost(part);
    return record_own_or_free(part, s);
}

static duet_status run_rank(void *context, int index)
{
    const parted *r = context;
    communicator *c = &r->g->comm[index];
    if (r->explains && index) return DUET_OK;
    duet_recording *own = recording_of_thread(NULL);
    c->told = false;
    duet_status s = group_call_resume(r->call, index);
    if (s == DUET_OK) s = run_part(r, c, index);
    else s = communicator_agree(c, s, r->word);
    group_call_pause(r->call, index);
    (void)recording_of_thread(own);
    return s;
}

static duet_status run_all(parted *r)
{
    int failed = -1;
    TRY(group_check(NULL, r->g));
    TRY(deferred_flush());
    TRY(split_ready(r->m->storage));
    if (!r->explains) TRY(group_call_of(r->g, &r->call));
    TRY(group_call_uses(r->call, r->m));
    r->ran = true;
    const duet_status s = group_run(r->g, run_rank, r, &failed);
    if (s == DUET_OK || failed < 0 || r->g->ranks == 1 || s == DUET_RANK_FAILED) return s;
    return fail_within(s, "rank %d", r->g->first + failed);
}

duet_status each_part(duet_matrix *m, part_work *work, void *context, uint64_t word)
{
    parted r = { .g = m->storage->split->group, .m = m, .work = work, .context = context };
    r.explains = thread_get()->explaining != NULL;
    r.word = hash_step(word, (uint64_t)m->count);
    for (int a = 0; a < m->at.rank; a++) r.word = hash_step(r.word, (uint64_t)m->at.size[a]);
    if (!m->count) return DUET_OK;
    duet_status s = run_all(&r);
    communicator *c = &r.g->comm[0];
    if (s != DUET_OK && !r.ran && !r.explains && r.g->near < r.g->ranks) s = communicator_agree(c, s, r.word);
    return s;
}
