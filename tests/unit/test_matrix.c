/* test_matrix.c - matrices and their buffers on the devices of fake_machines.h, by a random walk against a
 * model. Linked with -Wl,--wrap=malloc,--wrap=calloc it also lets every allocation of the library fail once.
 * */
#include "dtype.h"
#include "eviction.h"
#include "fake_machines.h"
#include "matrix.h"
#include "pool.h"

static uint64_t seed = 1;
static int draw(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

/* ---- the model ---- */

#define WALK_QUEUES 3
#define MOST        128 /* elements of a storage */
#define THINGS      24

/* What a storage holds, in whichever buffer. Bit d of `valid`: the buffer on device d must be valid. */
typedef struct contents {
    int refs;
    unsigned valid;
    duet_dtype type;
    int count;
    double value[MOST];
    bool lost[MOST];
    void *wrapped;
} contents;

/* A matrix and where, in its storage, each of its elements is. */
typedef struct thing {
    duet_matrix *m;
    contents *c;
    int rank, count, size[DUET_RANK_MAX];
    int where[MOST];
} thing;

static thing things[THINGS];
static int turn; /* of the walk, for messages */

static double get(duet_dtype t, const void *p)
{
    if (t == DUET_F32) return *(const float *)p;
    return *(const double *)p;
}
static void put(duet_dtype t, void *p, double x)
{
    if (t == DUET_F32) *(float *)p = (float)x;
    else *(double *)p = x;
}

/* The address of element n of t, counted row-major, when its first one is at p. */
static void *element(const thing *t, void *p, int n)
{
    int64_t at = 0;
    for (int a = t->rank; a-- > 0; n /= t->size[a]) at += n % t->size[a] * duet_stride(t->m, a);
    return (char *)p + at * (int64_t)dtypes[t->c->type].bytes;
}

/* Work on the device: expects the values, or puts them, or adds them to what is there. */
enum deed { EXPECT, PUT, ADD };
typedef struct job {
    enum deed deed;
    duet_dtype type;
    int count, turn;
    void *at[MOST];
    double value[MOST];
} job;

static void job_run(void *arg)
{
    job *k = arg;
    for (int i = 0; i < k->count; i++) {
        double x = get(k->type, k->at[i]);
        if (k->deed == EXPECT)
            CHECK(x == k->value[i], "turn %d: element %d is %g, not %g, on the device", k->turn, i, x,
                  k->value[i]);
        else put(k->type, k->at[i], k->value[i] + (k->deed == ADD ? x : 0));
    }
    free(k);
}

static void launch(const thing *t, int device, enum deed deed, const double *value, void *p, int queue)
{
    job *k = calloc(1, sizeof *k);
    *k = (job){ .deed = deed, .type = t->c->type, .count = t->count, .turn = turn };
    for (int i = 0; i < t->count; i++) {
        k->at[i] = element(t, p, i);
        k->value[i] = value[i];
    }
    storage *b = t->m->storage;
    line_add(device, queue,
             (work){ .call = CALLS, .to = b->buffer[device], .bytes = b->bytes, .run = job_run, .arg = k });
}

static double number(void) { return draw(1000) - 500; }

/* ---- what may happen ---- */

static thing *some(bool empty)
{
    int first = draw(THINGS);
    for (int i = 0; i < THINGS; i++) {
        thing *t = &things[(first + i) % THINGS];
        if (!t->m == empty) return t;
    }
    return NULL;
}

static bool fills_it(const thing *t) { return t->count == t->c->count; }

static bool has_lost(const thing *t)
{
    bool lost = false;
    for (int i = 0; i < t->count; i++) lost |= t->c->lost[t->where[i]];
    return lost;
}

/* If all elements are lost, no buffer is valid. */
static void lose(const thing *t)
{
    matrix_lost(t->m);
    for (int i = 0; i < t->count; i++) t->c->lost[t->where[i]] = true;
    if (fills_it(t) && t->count) t->c->valid = 0;
}

/* What opening for use on a device copies, and whether it may be opened at all. */
typedef struct forecast {
    bool refused, through_host;
    int uploads, downloads, copies;
} forecast;

static forecast foresee(const thing *t, int device, enum use use)
{
    const contents *c = t->c;
    const bool all = use == OVERWRITE && fills_it(t);
    forecast f = { .refused = use != OVERWRITE && has_lost(t) };
    if (all || !c->valid || c->valid >> device & 1 || !c->count) return f;
    const unsigned others = c->valid & ~(1u << HOST);
    const int from = others ? __builtin_ctz(others) : HOST;
    if (device == HOST) f.downloads = 1;
    else if (c->valid & 1) f.uploads = 1;
    else if (devices[device].machine == &fake_gpu && devices[from].machine == &fake_gpu) f.copies = 1;
    else f.downloads = f.uploads = f.through_host = 1;
    return f;
}

static bool is_at_limit(int device)
{
    const duet_memory m = pool_memory(device);
    return m.limit > 0 && m.cached == 0;
}

static void as_foreseen(forecast f, int device, bool ok, const duet_counts *before)
{
    duet_counts now = duet_stats();
    if (!ok && strstr(duet_error(), "the memory limit does not allow")) {
        CHECK(is_at_limit(device) || (f.through_host && is_at_limit(HOST)), "turn %d: %s", turn,
              duet_error());
    } else if (!fakes.failed) {
        CHECK(ok == !f.refused, "turn %d: %s", turn, duet_error());
        if (!ok) return;
        CHECK(now.uploads - before->uploads == (uint64_t)f.uploads, "turn %d: the number of uploads is wrong",
              turn);
        CHECK(now.downloads - before->downloads == (uint64_t)f.downloads,
              "turn %d: the number of downloads is wrong", turn);
        CHECK(now.copies - before->copies == (uint64_t)f.copies, "turn %d: the number of copies is wrong",
              turn);
    } else if (ok) {
        CHECK(!f.refused, "turn %d: reading a lost matrix did not fail", turn);
    }
}

/* Elements that went through the host are valid there, even if they got no further. */
static void note_host(const thing *t, forecast f)
{
    if (f.through_host && storage_valid_on(t->m->storage, HOST)) t->c->valid |= 1u << HOST;
}

static void *open_by_name(thing *t, int device, enum use use)
{
    typedef void *opener(duet_matrix *);
    static opener *const names[2][3] = { { (opener *)duet_read, duet_update, duet_overwrite },
                                         { (opener *)duet_device_read, duet_device_update,
                                           duet_device_overwrite } };
    if (device != HOST) CHECK(thread_use_gpu(device) == DUET_OK, "%s", duet_error());
    void *p = names[device != HOST][use](t->m);
    thread_get()->gpu = DEFAULT_GPU;
    return p;
}

/* Opens, by the public names when the queue is this thread's; the model follows when it succeeds. */
static void *open_it(thing *t, int device, enum use use, int queue)
{
    duet_counts before = duet_stats();
    const size_t to_move = matrix_to_move(t->m, device);
    const forecast f = foresee(t, device, use), read = foresee(t, device, READ);
    void *p = NULL;
    const bool known = queue == thread_get()->queue && draw(2);
    CHECK(to_move == (read.uploads || read.downloads || read.copies ? t->m->storage->bytes : 0),
          "turn %d: matrix_to_move is wrong", turn);

    if (known) p = open_by_name(t, device, use);
    else if (matrix_open(t->m, device, use, queue, &p) != DUET_OK) p = NULL;
    as_foreseen(f, device, p != NULL, &before);
    note_host(t, f);
    if (!p) return NULL;
    if (use != READ && !known) matrix_wrote(t->m, device, queue);
    if (use == READ) t->c->valid = t->c->valid | 1u << device;
    else t->c->valid = 1u << device;
    for (int i = 0; i < t->count; i++) t->c->lost[t->where[i]] = false;
    CHECK(storage_valid(t->m->storage) == t->c->valid, "turn %d: valid is %x, not %x", turn,
          storage_valid(t->m->storage), t->c->valid);
    return p;
}

static void on_host(thing *t, enum use use)
{
    char *p = open_it(t, HOST, use, draw(WALK_QUEUES));
    if (!p) return;
    for (int i = 0; i < t->count; i++) {
        void *e = element(t, p, i);
        double *want = &t->c->value[t->where[i]];
        if (use != OVERWRITE)
            CHECK(get(t->c->type, e) == *want, "turn %d: element %d is %g, not %g", turn, i,
                  get(t->c->type, e), *want);
        if (use != READ) put(t->c->type, e, *want = number());
    }
}

static void on_device(thing *t, enum use use)
{
    static const enum deed deeds[] = { [READ] = EXPECT, [UPDATE] = ADD, [OVERWRITE] = PUT };
    double value[MOST];
    const int queue = draw(WALK_QUEUES), device = DEFAULT_GPU + draw(FAKE_DEVICES - 1);
    char *p = open_it(t, device, use, queue);
    if (!p) return;
    for (int i = 0; i < t->count; i++) {
        double *now = &t->c->value[t->where[i]];
        if (use == READ) value[i] = *now;
        else value[i] = number();
        if (use != READ) *now = value[i] + (use == UPDATE ? *now : 0);
    }
    launch(t, device, deeds[use], value, p, queue);
}

/* A step is rejected after its output was opened: nothing is written, the state is unchanged. */
static void not_after_all(const thing *t)
{
    void *p;
    const int device = draw(FAKE_DEVICES);
    const enum use use = draw(2) ? UPDATE : OVERWRITE;
    const forecast f = foresee(t, device, use);
    (void)matrix_open(t->m, device, use, draw(WALK_QUEUES), &p);
    note_host(t, f);
}

static void become(thing *t, duet_matrix *m, contents *c, int rank, const int *size)
{
    *t = (thing){ .m = m, .c = c, .rank = rank, .count = 1 };
    for (int a = 0; a < rank; a++) {
        t->size[a] = size[a];
        t->count *= size[a];
    }
    c->refs++;
}

/* A new matrix, or one over memory of ours. */
static void make_matrix(thing *t, bool wrap)
{
    int rank = draw(4), size[3], count = 1;
    int64_t wide[3];
    for (int a = 0; a < rank; a++) {
        wide[a] = size[a] = draw(12) ? 1 + draw(5) : 0;
        count *= size[a];
    }
    contents *c = calloc(1, sizeof *c);
    *c = (contents){ .type = draw(2) ? DUET_F32 : DUET_F64, .count = count };
    if (wrap) {
        c->wrapped = calloc((size_t)count + 1, 8);
        c->valid = 1u << HOST;
        for (int i = 0; i < count; i++)
            put(c->type, (char *)c->wrapped + (size_t)i * dtypes[c->type].bytes, c->value[i] = number());
    }
    duet_matrix *m =
        wrap ? duet_wrap_shape(c->wrapped, c->type, rank, wide) : duet_new_shape(c->type, rank, wide);
    if (CHECK(m, "%s", duet_error())) become(t, m, c, rank, size);
    for (int i = 0; i < t->count; i++) t->where[i] = i;
}

/* The views, and which elements they must name. */
static void view_it(thing *v, thing *t)
{
    int n = t->rank ? t->size[0] : 0, rest = n ? t->count / n : 0, first = draw(n + 1),
        count = draw(n - first + 1);
    int size[DUET_RANK_MAX], rank = t->rank, kind = draw(6), cols = rank == 2 ? t->size[1] : 0;
    int j = draw(cols + 1), wide = draw(cols - j + 1);
    int64_t flat = t->count;
    for (int a = 0; a < rank; a++) size[a] = t->size[a];
    duet_matrix *m = NULL;
    int from = 0, down = cols, across = 1, turned = 0;
    if (kind == 0 && rank > 0) {
        m = duet_slice(t->m, first, count);
        size[0] = count;
        from = first * rest;
        across = 1;
        cols = 0;
    } else if (kind == 1 && first < n) {
        m = duet_row(t->m, first);
        memmove(size, size + 1, sizeof size - sizeof *size);
        rank--;
        from = first * rest;
        cols = 0;
    } else if (kind == 2 && j < cols) {
        m = duet_column(t->m, j);
        rank = 1;
        from = j;
        across = cols;
        cols = 0;
    } else if (kind == 3 && rank == 2) {
        m = duet_submatrix(t->m, first, j, count, wide);
        size[0] = count;
        size[1] = wide;
        from = first * cols + j;
    } else if (kind == 4 && rank == 2) {
        m = duet_transposed(t->m);
        size[0] = t->size[1];
        size[1] = t->size[0];
        down = 1;
        across = cols;
        turned = 1;
    } else if (kind == 5 && t->m->dense) {
        m = duet_reshaped_shape(t->m, 1, &flat);
        size[0] = t->count;
        rank = 1;
        cols = 0;
    } else return;
    if (!CHECK(m, "view %d: %s", kind, duet_error())) return;
    become(v, m, t->c, rank, size);
    for (int i = 0; i < v->count; i++) {
        int place =
            cols || turned ? from + i / v->size[1] * down + i % v->size[1] * across : from + i * across;
        v->where[i] = t->where[place];
    }
    CHECK(duet_count(m) == v->count && duet_rank(m) == rank && duet_type(m) == t->c->type,
          "view %d has wrong properties", kind);
    for (int a = 0; a < rank; a++) CHECK(duet_size(m, a) == size[a], "view %d has wrong properties", kind);
}

static void die(thing *t)
{
    duet_free(&t->m);
    CHECK(!t->m, "duet_free did not set the pointer to NULL");
    if (--t->c->refs == 0) {
        if (t->c->wrapped) line_spares(t->c->wrapped, (size_t)t->c->count * 8);
        free(t->c->wrapped);
        free(t->c);
    }
}

static void accounted(void)
{
    for (int d = HOST; d < FAKE_DEVICES; d++) {
        duet_memory m = pool_memory(d);
        CHECK(m.used + m.cached == fakes.live[d], "turn %d: %zu + %zu bytes are counted, %zu are allocated",
              turn, m.used, m.cached, fakes.live[d]);
        CHECK(m.peak >= m.used + m.cached, "turn %d: the peak is too small", turn);
    }
    CHECK(!fakes.wrong, "turn %d: %s", turn, fakes.wrong);
}

static void set_limit(int device, size_t bytes)
{
    const duet_memory m = pool_memory(device);
    if (bytes && bytes < m.used) bytes = m.used;
    if (device != HOST) thread_get()->gpu = device;
    CHECK(duet_memory_limit(device == HOST ? DUET_CPU : DUET_GPU, bytes) == DUET_OK, "%s", duet_error());
    thread_get()->gpu = DEFAULT_GPU;
    fakes.limit[device] = bytes;
}

static void take_turn(void)
{
    thing *t = some(false), *empty = some(true);
    fakes.failed = false;
    int what = draw(42);
    if (!t || what < 3) {
        if (empty) make_matrix(empty, what == 0);
    } else if (what < 8) {
        if (empty) view_it(empty, t);
    } else if (what < 13) die(t);
    else if (what < 24) on_host(t, (enum use)draw(3));
    else if (what < 35) on_device(t, (enum use)draw(3));
    else if (what == 35 && !draw(4)) lose(t);
    else if (what == 36) {
        fakes.fail_in[draw(CALLS)] = 1 + draw(3);
        if (draw(3)) fakes.fail_any = 0;
        else fakes.fail_any = 1 + draw(4);
        fakes.stubborn = draw(2);
    } else if (what > 39) not_after_all(t);
    else if (what == 37) device_sync(DEFAULT_GPU + draw(FAKE_DEVICES - 1), draw(WALK_QUEUES));
    else if (what == 38 && !draw(10)) duet_memory_trim();
    else if (what == 39 && !draw(10))
        set_limit(draw(FAKE_DEVICES), draw(2) ? 0 : (size_t)(4000 + draw(9000)));
    accounted();
}

/* Reaching the memory limit counts as a failure, although the test did not make a machine fail. */
static void walk(uint64_t from, int steps)
{
    seed = from;
    for (turn = 0; turn < steps && tap_failures == 0; turn++) take_turn();
    memset(fakes.fail_in, 0, sizeof fakes.fail_in);
    fakes.fail_any = 0;
    fakes.stubborn = false;
    for (int d = HOST; d < FAKE_DEVICES; d++) set_limit(d, 0);
    fakes.failed = false;
    for (int i = 0; i < THINGS; i++) {
        if (things[i].m) on_host(&things[i], READ);
        if (things[i].m) die(&things[i]);
    }
    duet_memory_trim();
    fake_machines_finish();
    for (int d = HOST; d < FAKE_DEVICES; d++)
        CHECK(fakes.live[d] == 0 && fakes.blocks[d] == 0, "%zu bytes were not released", fakes.live[d]);
}

static void test_walk(void)
{
    for (uint64_t from = 1; from <= 12; from++) {
        walk(from * 7919, 8000);
        if (!CHECK(tap_failures == 0, "random sequence %d failed", (int)from)) break;
    }
    duet_counts c = duet_stats();
    CHECK(c.uploads == fakes.made[UPLOAD] && c.upload_bytes == fakes.bytes[UPLOAD],
          "the counted uploads are wrong");
    CHECK(c.downloads == fakes.made[DOWNLOAD] && c.download_bytes == fakes.bytes[DOWNLOAD],
          "the counted downloads are wrong");
    CHECK(c.copies == fakes.made[COPY] && c.copy_bytes == fakes.bytes[COPY] && c.copies,
          "the counted copies between devices are wrong");
    printf(
        "# %llu uploads, %llu downloads, %llu copies, %llu waits on the host, %llu among queues, pool %llu + "
        "%llu\n",
        (unsigned long long)c.uploads, (unsigned long long)c.downloads, (unsigned long long)c.copies,
        (unsigned long long)c.synchronisations, (unsigned long long)fakes.made[WAIT],
        (unsigned long long)c.pool_hits, (unsigned long long)c.pool_misses);
    tap_point("residency: a random sequence of accesses");
}

/* ---- views of one storage ---- */

/* Two views of one storage, element by element. */
static enum overlap slow_overlap(const thing *a, const thing *b)
{
    bool same = a->rank == b->rank && !memcmp(a->size, b->size, sizeof a->size), meet = false;
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++) meet |= a->where[i] == b->where[j];
    for (int i = 0; same && i < a->count; i++) same = a->where[i] == b->where[i];
    if (a->c != b->c || !meet) return APART;
    if (same) return SAME;
    return TANGLED;
}

static void test_overlap(void)
{
    int told[3] = { 0 }, missed = 0;
    seed = 4711;
    for (int n = 0; n < 3000; n++) {
        make_matrix(&things[0], false);
        for (int i = 1; i < 8; i++)
            if (!things[i].m) view_it(&things[i], &things[draw(i) && things[i - 1].m ? i - 1 : 0]);
        for (int i = 0; i < 8; i++)
            for (int j = 0; j < 8; j++) {
                if (!things[i].m || !things[j].m) continue;
                enum overlap got = matrix_overlap(things[i].m, things[j].m),
                             want = slow_overlap(&things[i], &things[j]);
                told[got]++;
                missed += got == TANGLED && want == APART;
                CHECK(got == want || (got == TANGLED && want != TANGLED), "pair %d: %d, not %d", n, got,
                      want);
                CHECK(want != SAME || got == SAME, "pair %d is not recognised as the same", n);
            }
        for (int i = 0; i < 8; i++)
            if (things[i].m) die(&things[i]);
    }
    printf("# %d apart, %d the same, %d tangled of which %d needlessly\n", told[APART], told[SAME],
           told[TANGLED], missed);
    CHECK(missed * 20 < told[APART], "too many pairs are taken for tangled");
    tap_point("overlap of layouts");
}

/* ---- lost parts ---- */

static bool is_there(const duet_matrix *m, float first)
{
    const float *p = duet_read(m);
    return p && *p == first;
}

/* The third row of m is lost, then the third and fourth column of the two last rows. */
static void test_lost_parts(void)
{
    duet_matrix *m = duet_new(DUET_F32, 6, 8), *row = duet_row(m, 2), *block = duet_submatrix(m, 4, 2, 2, 2),
                *other = duet_row(m, 3), *column = duet_column(m, 2), *right = duet_submatrix(m, 0, 4, 6, 4),
                *low = duet_submatrix(m, 3, 1, 3, 4), *turned = duet_transposed(row);
    float *p = duet_overwrite(m);
    for (int i = 0; i < 48; i++) p[i] = (float)i;
    matrix_lost(row);
    matrix_lost(block);
    CHECK(!duet_read(m) && strstr(duet_error(), "lost") && !duet_read(row) && !duet_read(block), "%s",
          duet_error());
    CHECK(is_there(other, 24) && !duet_read(column) && !duet_read(right) && !duet_update(row), "%s",
          duet_error());
    CHECK((p = duet_update(other)) && *p == 24 && !duet_read(m), "%s", duet_error());
    CHECK(duet_overwrite(turned) && is_there(row, 16) && is_there(right, 4) && !duet_read(column), "%s",
          duet_error());
    CHECK(duet_overwrite(low) && is_there(column, 2) && is_there(m, 0), "%s", duet_error());
    CHECK(!storage_lost(m->storage), "elements still count as lost");

    CHECK(duet_device_update(m) && is_there(m, 0), "%s", duet_error());
    matrix_write_failed(row, DEFAULT_GPU); /* the host has the elements too */
    CHECK(is_there(m, 0) && is_there(row, 16), "%s", duet_error());
    CHECK(duet_device_update(m) != NULL, "%s", duet_error());
    matrix_write_failed(row, DEFAULT_GPU);
    CHECK(is_there(other, 24) && !duet_read(row) && !duet_read(m), "%s", duet_error());
    matrix_lost(block);
    CHECK(duet_device_overwrite(m) && !storage_lost(m->storage), "%s", duet_error());
    matrix_lost(block); /* is freed with the storage */
    duet_free(&m, &row, &block, &other, &column, &right, &low, &turned);
    tap_point("lost parts of a matrix");
}

/* ---- everything fails once ---- */

/* Adds 1 to each element of m on a device, by a queue. */
static void add_one(void *p)
{
    float *x = p;
    for (int i = 0; i < 64; i++) x[i] += 1;
}

static bool add_on(duet_matrix *m, int device, int queue)
{
    void *p;
    if (matrix_open(m, device, UPDATE, queue, &p) != DUET_OK) return false;
    line_add(device, queue,
             (work){ .call = CALLS, .to = p, .bytes = 64 * sizeof(float), .run = add_one, .arg = p });
    matrix_wrote(m, device, queue);
    return true;
}

/* All devices and a view; false at the first failure. */
static bool scenario(duet_matrix *m[3], float *mine)
{
    const int64_t size[] = { 8, 8 };
    if (!(m[0] = duet_new_shape(DUET_F32, 2, size)) || !(m[1] = duet_wrap_shape(mine, DUET_F32, 2, size)))
        return false;
    if (!(m[2] = duet_row(m[0], 3))) return false;
    float *p = duet_update(m[2]), *q;
    if (!p) return false;
    for (int i = 0; i < 8; i++) p[i] = (float)i;
    if (!duet_device_read(m[0]) || !duet_device_update(m[1]) || !(q = duet_update(m[0]))) return false;
    if (!CHECK(q[24 + 7] == 7 && q[0] == 0, "the elements are %g, %g", q[24 + 7], q[0])) return false;
    q[0] = 0;
    const float *r = duet_device_update(m[0]) ? duet_read(m[2]) : NULL;
    if (!r || !CHECK(r[7] == 7, "the last element is %g", r[7]) || !duet_read(m[1])) return false;
    for (int n = 0; n < 2; n++)
        for (int d = DEFAULT_GPU; d < FAKE_DEVICES; d++)
            if (!add_on(m[0], d, d % 2)) return false;
    r = duet_read(m[2]);
    return r && CHECK(r[7] == 13, "the last element is %g", r[7]);
}

static bool scenario_fails_at(int n, bool allocation)
{
    duet_matrix *m[3] = { NULL };
    float mine[64] = { 1, 2, 3 };
    duet_memory_trim();
    duet_memory before[FAKE_DEVICES];
    for (int d = HOST; d < FAKE_DEVICES; d++) before[d] = pool_memory(d);
    fakes.failed = false;
    *(allocation ? &refuse_in : &fakes.fail_any) = n;
    bool done = scenario(m, mine), failed = allocation ? !refuse_in : fakes.failed;
    refuse_in = fakes.fail_any = 0;
    CHECK(done || failed, "the call fails without an injected failure: %s", duet_error());
    CHECK(done || *duet_error(), "failure %d has no error text", n);
    for (int i = 0; i < 3; i++) duet_free(&m[i]);
    CHECK(scenario(m, mine), "after failure %d: %s", n, duet_error());
    CHECK(mine[0] == 1 && mine[2] == 3, "the wrapped memory was changed");
    for (int i = 0; i < 3; i++) duet_free(&m[i]);
    duet_memory_trim();
    for (int d = HOST; d < FAKE_DEVICES; d++) {
        CHECK(pool_memory(d).used == before[d].used, "memory of device %d was not released after failure %d",
              d, n);
        CHECK(fakes.live[d] == before[d].used, "blocks of device %d were not freed after failure %d", d, n);
    }
    return failed;
}

static void test_failures(void)
{
    int n = 1, k = 1;
    while (scenario_fails_at(n, false)) n++;
    if (can_refuse())
        while (scenario_fails_at(k, true)) k++;
    printf("# %d calls and %d allocations failed, each once\n", n - 1, k - 1);
    CHECK(n > 8 && (k > 4 || !can_refuse()), "only %d calls and %d allocations", n, k);
    tap_point(can_refuse() ? "every call and every allocation fails once"
                           : "every call fails once # (no allocation: linked without --wrap)");
}

int main(void)
{
    evict_matrices(false); /* the model says which buffers are valid */
    test_walk();
    test_overlap();
    test_lost_parts();
    test_failures();
    fake_machines_finish();
    return tap_end();
}
