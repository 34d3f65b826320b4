/* pointers.c - pointers to elements, for the user: duet_read, duet_update, duet_overwrite, and the same on a
 * device. */
#include "deferred.h"
#include "device_use.h"
#include "eviction.h"
#include "matrix.h"

static void note_host_pointer(const duet_matrix *m, enum use use)
{
    if (!matrix_seen(m)) __atomic_store_n(&m->storage->seen, true, __ATOMIC_RELAXED);
    if (use != OVERWRITE) __atomic_store_n(&m->storage->asked, true, __ATOMIC_RELAXED);
}

static duet_status check_pointer(const char *who, const duet_matrix *m, int device, enum use use)
{
    const char *why = device_absent(device);
    TRY(matrix_check(who, m));
    if (use != READ) TRY(matrix_check_writable(who, m));
    if (why) return fail(DUET_NO_DEVICE, "%s: %s", who, why);
    return DUET_OK;
}

typedef struct access {
    buffer_user user;
    const storage *of;
} access;

static bool is_accessed(const buffer_user *u, const storage *b) { return ((const access *)u)->of == b; }

/* The user may keep the pointer until a statement uses m. */
static duet_status lend(const duet_matrix *m, int device, enum use use, void **p)
{
    thread *t = thread_get();
    access a = { .of = m->storage };
    buffer_user_begin(t, &a.user, is_accessed);
    const duet_status s = matrix_open(m, device, use, t->queue, p);
    if (s == DUET_OK) __atomic_store_n(&m->storage->lent, true, __ATOMIC_RELAXED);
    buffer_user_end(t, &a.user);
    return s;
}

static duet_status access_elements(const duet_matrix *m, int device, enum use use, void **p)
{
    thread *t = thread_get();
    t->accesses = true;
    const duet_status s = device == HOST ? matrix_open(m, device, use, t->queue, p) : lend(m, device, use, p);
    t->accesses = false;
    return s;
}

/* Flushes deferred work first: the caller may queue work of its own on the device. */
static void *pointer(const char *who, const duet_matrix *m, int device, enum use use)
{
    void *p;
    const int queue = thread_get()->queue;
    USE_GPUS_IF(device != HOST);
    if (check_pointer(who, m, device, use) != DUET_OK) return NULL;
    duet_status st = DUET_OK;
    if (device != HOST) st = deferred_flush();
    if (st == DUET_OK) st = access_elements(m, device, use, &p);
    if (st != DUET_OK) {
        fail_at(st, who);
        return NULL;
    }
    if (device == HOST) note_host_pointer(m, use);
    if (use != READ) {
        matrix_wrote(m, device, queue);
        matrix_clear_accrued_cost(m);
    }
    return p;
}

static void *device_pointer(const char *who, const duet_matrix *m, enum use use)
{
    return pointer(who, m, thread_get()->gpu, use);
}

duet_status matrix_lend_to_others(const char *who, const duet_matrix *m, int device, enum use use, void **p)
{
    TRY(matrix_check(who, m));
    storage *b = m->storage;
    if (b->split)
        return fail(DUET_UNSUPPORTED,
                    "%s: m is on a group, so others cannot share its memory; use a copy of m", who);
    __atomic_add_fetch(&b->loans, 1, __ATOMIC_SEQ_CST);
    *p = pointer(who, m, device, use);
    if (*p) __atomic_or_fetch(&b->exported, (uint16_t)(1u << device), __ATOMIC_RELAXED);
    else matrix_end_loan(m);
    return *p ? DUET_OK : thread_get()->status;
}

void matrix_end_loan(const duet_matrix *m) { __atomic_sub_fetch(&m->storage->loans, 1, __ATOMIC_RELEASE); }

const void *(duet_read)(const duet_matrix *m) { return pointer("duet_read", m, HOST, READ); }

void *(duet_update)(duet_matrix *m) { return pointer("duet_update", m, HOST, UPDATE); }

void *(duet_overwrite)(duet_matrix *m) { return pointer("duet_overwrite", m, HOST, OVERWRITE); }

/* Errors: BAD_ARGUMENT, BAD_TYPE */
static bool has_type(const char *who, const duet_matrix *m, duet_dtype type)
{
    char text[SHAPE_TEXT];
    if (matrix_check(who, m) != DUET_OK) return false;
    if (m->at.type == type) return true;
    shape_text(text, m->at.type, m->at.rank, m->at.size);
    if ((unsigned)type < DUET_DTYPE_COUNT)
        fail(DUET_BAD_TYPE, "%s(m: %s): the element type of m must be %s", who, text, dtypes[type].name);
    else fail(DUET_BAD_TYPE, "%s(m: %s): type (%d) is not an element type", who, text, (int)type);
    return false;
}

const void *duet_read_as(const duet_matrix *m, duet_dtype type)
{
    return has_type("duet_read", m, type) ? pointer("duet_read", m, HOST, READ) : NULL;
}

void *duet_update_as(duet_matrix *m, duet_dtype type)
{
    return has_type("duet_update", m, type) ? pointer("duet_update", m, HOST, UPDATE) : NULL;
}

void *duet_overwrite_as(duet_matrix *m, duet_dtype type)
{
    return has_type("duet_overwrite", m, type) ? pointer("duet_overwrite", m, HOST, OVERWRITE) : NULL;
}

const void *(duet_device_read)(const duet_matrix *m) { return device_pointer("duet_device_read", m, READ); }

void *(duet_device_update)(duet_matrix *m) { return device_pointer("duet_device_update", m, UPDATE); }

void *(duet_device_overwrite)(duet_matrix *m)
{
    return device_pointer("duet_device_overwrite", m, OVERWRITE);
}
