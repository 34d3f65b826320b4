/* test_dlpack.c - exchanges matrices by DLPack in memory of the host: random shapes, types, strides and views
 * in both directions, tensors that are refused, the order in which both sides end, threads, and the exchange
 * table. Every deleter is counted.
 *
 *     test_dlpack [trials] [seed] */
#include "by_sanitizer.h"
#include "dlpack_tensor.h"
#include "element.h"
#include "matrix.h"
#include "quick.h"
#include "random_matrix.h"
#include <pthread.h>

#define LENGTH(a) (int)(sizeof(a) / sizeof *(a))

static rng r;
static int draw(int n) { return (int)rng_below(&r, n); }

/* ---- tensors of others ---- */

enum { SPACE = 1 << 16 };

/* Memory with strides: `first` is the element whose indices are all 0. */
typedef struct strided {
    duet_dtype type;
    int rank;
    int64_t size[DUET_RANK_MAX], stride[DUET_RANK_MAX], count, elements;
    bool repeats, dense;
    unsigned char *memory, *first;
    size_t each;
} strided;

/* Axes count as overlapping if a stride does not step over all that axes with smaller strides reach. */
static bool repeats_elements(const strided *s)
{
    for (int a = 0; a < s->rank && s->count; a++) {
        const int64_t own = llabs(s->stride[a]);
        int64_t reach = 0;
        for (int b = 0; b < s->rank; b++) {
            const int64_t other = llabs(s->stride[b]);
            if (b != a && (other < own || (other == own && b < a))) reach += (s->size[b] - 1) * other;
        }
        if (s->size[a] > 1 && own <= reach) return true;
    }
    return false;
}

/* Axes in a random order, with gaps between them; some are reversed, repeat their elements, or overlap. */
static void draw_strides(strided *s)
{
    int order[DUET_RANK_MAX];
    int64_t next = 1 + draw(2), low = 0;
    for (int a = 0; a < s->rank; a++) order[a] = a;
    for (int a = s->rank; a-- > 1;) {
        const int b = draw(a + 1), t = order[a];
        order[a] = order[b];
        order[b] = t;
    }
    for (int k = 0; k < s->rank; k++) {
        const int a = order[k], more = s->size[a] > 1 ? (int)s->size[a] - 1 : 0;
        s->stride[a] = next;
        if (rng_chance(&r, 8)) s->stride[a] = 0;
        else if (rng_chance(&r, 8)) {
            s->stride[a] = 1 + draw((int)next);
            next += more * s->stride[a];
        } else next = next * (more + 1) + draw(3);
        if (rng_chance(&r, 25)) s->stride[a] = -s->stride[a];
        if (s->stride[a] < 0) low += (s->size[a] - 1) * s->stride[a];
    }
    s->repeats = repeats_elements(s);
    s->elements = next;
    s->first = s->memory + (s->count ? -low : 0) * (int64_t)s->each;
}

static void set_dense(strided *s)
{
    int64_t next = 1;
    for (int a = s->rank; a-- > 0; next *= s->size[a]) s->stride[a] = next;
    s->elements = s->count;
    s->first = s->memory;
    s->repeats = false;
}

static void fill_memory(const strided *s)
{
    const duet_dtype part = dtype_part(s->type);
    const int64_t parts = SPACE / (int64_t)dtypes[part].bytes;
    for (int64_t i = 0; i < parts; i++)
        element_put(part, s->memory, i, part == DUET_BOOL ? draw(2) : draw(100));
}

static void draw_strided(strided *s)
{
    s->type = (duet_dtype)draw(DUET_DTYPE_COUNT);
    s->each = dtypes[s->type].bytes;
    s->rank = draw(DUET_RANK_MAX + 1);
    s->count = 1;
    for (int a = 0; a < s->rank; a++) {
        s->size[a] = rng_chance(&r, 3) ? 0 : 1 + draw(s->rank > 5 ? 2 : 4);
        s->count *= s->size[a];
    }
    s->dense = rng_chance(&r, 30);
    s->memory = calloc(1, SPACE);
    if (s->dense) set_dense(s);
    else draw_strides(s);
    fill_memory(s);
}

static const unsigned char *element_of(const strided *s, int64_t i)
{
    return s->first + strided_offset(s->rank, s->size, s->stride, i) * (int64_t)s->each;
}

/* Has m the elements of s? A copy is read, which is made by a statement. */
static void compare(const strided *s, duet_matrix *m, const char *what)
{
    duet_matrix *copy = duet_copy(m);
    const unsigned char *p = copy ? duet_read(copy) : NULL;
    CHECK(p != NULL, "%s: %s", what, duet_error());
    CHECK(duet_count(m) == s->count && duet_rank(m) == s->rank && duet_type(m) == s->type, "%s: the shape",
          what);
    for (int64_t i = 0; p && i < s->count; i++)
        if (!CHECK(!memcmp(p + i * (int64_t)s->each, element_of(s, i), s->each), "%s: element %d of %s[%d]",
                   what, (int)i, dtypes[s->type].name, (int)s->count))
            break;
    duet_free(&copy);
}

/* Writes ones through m, and compares all bytes of the memory with a model. */
static void write_ones(strided *s, duet_matrix *m)
{
    unsigned char *model = malloc(SPACE), one[16] = { 0 };
    memcpy(model, s->memory, SPACE);
    element_put(dtype_part(s->type), one, 0, 1);
    for (int64_t i = 0; i < s->count; i++) memcpy(model + (element_of(s, i) - s->memory), one, s->each);
    CHECK(duet_set(m, 1) == DUET_OK && duet_read(m), "%s", duet_error());
    CHECK(!memcmp(model, s->memory, SPACE), "%s: other bytes than those of the elements",
          dtypes[s->type].name);
    free(model);
}

static void check_strides_of(const strided *s, const duet_matrix *m)
{
    for (int a = 0; a < s->rank && s->count; a++)
        CHECK(s->size[a] == duet_size(m, a) && (s->size[a] == 1 || s->stride[a] == duet_stride(m, a)),
              "axis %d: stride %d, not %d", a, (int)duet_stride(m, a), (int)s->stride[a]);
}

static void refused(duet_status s, const char *what, const char *name)
{
    CHECK(s == DUET_BAD_ARGUMENT && strstr(duet_error(), what), "%s: status %d: %s", name, (int)s,
          duet_error());
}

static void import_one(bool legacy)
{
    strided s;
    foreign f;
    draw_strided(&s);
    foreign_init(&f, s.first, s.type, s.rank, s.size, s.dense && rng_chance(&r, 50) ? NULL : s.stride);
    DLTensor *t = legacy ? &f.legacy.dl_tensor : &f.versioned.dl_tensor;
    if (rng_chance(&r, 30)) { /* the same address by an offset */
        t->byte_offset = (uint64_t)(s.first - s.memory);
        t->data = s.memory;
    }
    if (!s.count && rng_chance(&r, 50)) t->data = NULL;
    if (rng_chance(&r, 20)) t->device.device_type = kDLCUDAHost;
    const bool constant = !legacy && rng_chance(&r, 40);
    if (constant) f.versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    duet_matrix *m = legacy ? duet_from_dlpack_legacy(&f.legacy, DUET_DLPACK_LEGACY)
                            : duet_from_dlpack(&f.versioned, DUET_DLPACK_NO_SYNC);
    if (CHECK(m != NULL, "%s", duet_error())) {
        check_strides_of(&s, m);
        compare(&s, m, "an imported tensor");
        if (constant) refused(duet_set(m, 1), "must not be written", "a read-only tensor");
        else if (s.repeats) refused(duet_set(m, 1), "repeats", "a tensor whose elements repeat");
        else write_ones(&s, m);
        if (s.count) CHECK(duet_read(m) == s.first, "the elements were copied");
    }
    CHECK(f.deleted == 0, "deleted while the matrix exists");
    duet_free(&m);
    CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    free(s.memory);
}

static void test_import(int trials)
{
    for (int i = 0; i < trials; i++) import_one(i % 4 == 3);
    tap_point("tensors of random types, shapes and strides become matrices; each deleter is called once");
}

/* ---- tensors of matrices ---- */

/* Random views of m, each of the one before. */
static duet_matrix *random_view_of(duet_matrix *m, int depth)
{
    duet_matrix *v = duet_indexed(m, DUET_REST);
    for (int k = 0; k < depth && v; k++) {
        const int rank = duet_rank(v);
        const int axis = rank ? draw(rank) : 0;
        duet_matrix *next = NULL;
        switch (draw(5)) {
        case 0: next = duet_transposed(v); break;
        case 1: next = rank ? duet_flipped(v, axis) : duet_transposed(v); break;
        case 2:
            next = rank ? duet_stepped(v, axis, draw(2), DUET_OPEN, 1 + draw(2)) : duet_transposed(v);
            break;
        case 3: next = rank < DUET_RANK_MAX ? duet_expanded(v, draw(rank + 1)) : duet_transposed(v); break;
        default:
            next = rank && duet_size(v, axis) ? duet_picked(v, axis, draw((int)duet_size(v, axis)))
                                              : duet_transposed(v);
        }
        duet_free(&v);
        v = next;
    }
    return v;
}

/* copied: it has no gaps. */
static void check_tensor(const DLTensor *t, duet_matrix *m, bool copied)
{
    const DLDataType type = type_in_dlpack(duet_type(m));
    duet_matrix *copy = duet_copy(m);
    const char *want = duet_read(copy), *got = (const char *)t->data + t->byte_offset;
    const size_t each = dtypes[duet_type(m)].bytes;
    CHECK(t->dtype.code == type.code && t->dtype.bits == type.bits && t->dtype.lanes == 1, "the type");
    CHECK(t->device.device_type == kDLCPU && t->device.device_id == 0 && t->ndim == duet_rank(m),
          "the device");
    CHECK(t->strides && t->shape && (t->data != NULL) == (duet_count(m) != 0), "pointers");
    for (int a = 0; a < t->ndim; a++)
        CHECK(t->shape[a] == duet_size(m, a) && (copied || t->strides[a] == duet_stride(m, a)), "axis %d", a);
    for (int64_t i = 0; i < duet_count(m); i++)
        if (!CHECK(!memcmp(want + (size_t)i * each,
                           got + strided_offset(t->ndim, t->shape, t->strides, i) * (int64_t)each, each),
                   "element %d", (int)i))
            break;
    duet_free(&copy);
}

static void export_one(void)
{
    int64_t size[4];
    const int rank = draw(5);
    const duet_dtype type = (duet_dtype)draw(DUET_DTYPE_COUNT);
    const int64_t live = duet_live(NULL);
    for (int a = 0; a < rank; a++) size[a] = draw(5);
    duet_matrix *m = random_matrix(&r, type, rank, size, 0, 2), *v = random_view_of(m, draw(4));
    const duet_dlpack_options o = { .place = DUET_CPU, .writable = draw(2), .copy = rng_chance(&r, 20) };
    struct DLManagedTensorVersioned *t = duet_to_dlpack(v, &o);
    if (CHECK(t != NULL, "%s", duet_error())) {
        CHECK(t->version.major == 1 && t->version.minor == 3, "the version");
        CHECK(!(t->flags & 1) == (o.writable || o.copy) && !(t->flags & 2) == !o.copy, "flags %d",
              (int)t->flags);
        check_tensor(&t->dl_tensor, v, o.copy);
        duet_matrix *back = duet_from_dlpack(t, DUET_DLPACK_LEGACY);
        CHECK(back != NULL, "%s", duet_error());
        if (back && !o.copy) CHECK(back->storage == v->storage, "an exported matrix was wrapped");
        if (back && !o.writable && !o.copy) refused(duet_set(back, 1), "must not be written", "a round trip");
        else CHECK(duet_set(back, 1) == DUET_OK, "%s", duet_error());
        duet_matrix *all = duet_eval(duet_all(duet_equal(v, 1)));
        const uint8_t *ones = all ? duet_read(all) : NULL;
        if (o.writable && !o.copy) CHECK(ones && *ones, "writing does not reach the original");
        duet_free(&all, &back);
    }
    duet_free(&v, &m);
    CHECK(duet_live(NULL) == live, "%d matrices are left", (int)(duet_live(NULL) - live));
}

static void test_export(int trials)
{
    for (int i = 0; i < trials; i++) export_one();
    tap_point("random views become tensors, and these become views of the original again");
}

/* ---- tensors that are refused ---- */

enum { N = 6 };
static double numbers[N];

static void plain(foreign *f)
{
    foreign_init(f, numbers, DUET_F64, 2, (const int64_t[]){ 2, 3 }, (const int64_t[]){ 3, 1 });
}

/* After a refusal the tensor is the caller's, and can be used once it is corrected. */
static void refuse_tensor(foreign *f, duet_status want, const char *text)
{
    const int64_t live = duet_live(NULL);
    duet_matrix *m = duet_from_dlpack(&f->versioned, DUET_DLPACK_LEGACY);
    CHECK(!m && duet_error_status() == want, "\"%s\": status %d: %s", text, (int)duet_error_status(),
          duet_error());
    CHECK(strstr(duet_error(), "test_dlpack.c:") && strstr(duet_error(), "duet_from_dlpack") &&
              strstr(duet_error(), text),
          "\"%s\" is not in: %s", text, duet_error());
    duet_free(&m);
    CHECK(f->deleted == 0 && duet_live(NULL) == live, "\"%s\": deleted %d times", text, f->deleted);
}

#define T(f) (f).versioned.dl_tensor

static void test_types_refused(void)
{
    const struct {
        DLDataType t;
        const char *text;
    } bad[] = { { { kDLFloat8_e4m3fn, 8, 1 }, "float8_e4m3fn of 8 bits" },
                { { kDLFloat4_e2m1fn, 4, 1 }, "float4_e2m1fn of 4 bits" },
                { { kDLFloat6_e3m2fn, 6, 1 }, "float6_e3m2fn" },
                { { kDLOpaqueHandle, 64, 1 }, "opaque handle" },
                { { kDLFloat, 128, 1 }, "float of 128 bits" },
                { { kDLFloat, 8, 1 }, "float of 8 bits" },
                { { kDLComplex, 32, 1 }, "complex of 32 bits" },
                { { kDLBool, 1, 1 }, "bool of 1 bits" },
                { { kDLInt, 4, 1 }, "int of 4 bits" },
                { { 99, 32, 1 }, "unknown of 32 bits" },
                { { kDLFloat, 64, 4 }, "4 lanes" },
                { { kDLFloat, 64, 0 }, "0 lanes" } };
    for (int i = 0; i < LENGTH(bad); i++) {
        foreign f;
        plain(&f);
        T(f).dtype = bad[i].t;
        refuse_tensor(&f, DUET_UNSUPPORTED, bad[i].text);
    }
    tap_point("element types that Duet does not have are refused");
}

static void test_devices_refused(void)
{
    for (int d = 0; d < 25; d++) {
        if (d == kDLCPU || d == kDLCUDA || d == kDLCUDAHost || d == kDLCUDAManaged) continue;
        foreign f;
        plain(&f);
        T(f).device.device_type = (DLDeviceType)d;
        refuse_tensor(&f, DUET_UNSUPPORTED, d == kDLROCM ? "ROCm" : "device type");
    }
    foreign f;
    plain(&f);
    T(f).device = (DLDevice){ kDLCUDA, 77 };
    refuse_tensor(&f, DUET_NO_DEVICE, "device 77");
    tap_point("devices that Duet does not know are refused");
}

static void test_shapes_refused(void)
{
    foreign f;
    plain(&f);
    T(f).ndim = DUET_RANK_MAX + 1;
    refuse_tensor(&f, DUET_BAD_SHAPE, "9 axes");
    plain(&f), T(f).ndim = -1;
    refuse_tensor(&f, DUET_BAD_SHAPE, "-1 axes");
    plain(&f), T(f).shape = NULL;
    refuse_tensor(&f, DUET_BAD_ARGUMENT, "shape");
    plain(&f), f.shape[0] = -2;
    refuse_tensor(&f, DUET_BAD_SHAPE, "negative");
    plain(&f), f.shape[0] = f.shape[1] = INT64_C(1) << 40;
    refuse_tensor(&f, DUET_BAD_SHAPE, "overflows");
    plain(&f), f.strides[0] = INT64_MAX;
    refuse_tensor(&f, DUET_BAD_SHAPE, "overflows");
    plain(&f), f.strides[0] = INT64_MIN;
    refuse_tensor(&f, DUET_BAD_SHAPE, "overflows");
    plain(&f), f.strides[1] = INT64_C(1) << 58;
    refuse_tensor(&f, DUET_BAD_SHAPE, "overflows");
    tap_point("shapes and strides that Duet does not have are refused");
}

static void test_addresses_refused(void)
{
    foreign f;
    plain(&f);
    T(f).data = NULL;
    refuse_tensor(&f, DUET_BAD_ARGUMENT, "data");
    plain(&f), T(f).byte_offset = 3;
    refuse_tensor(&f, DUET_BAD_ARGUMENT, "aligned");
    plain(&f), T(f).byte_offset = UINT64_MAX;
    refuse_tensor(&f, DUET_BAD_ARGUMENT, "overflow");
    plain(&f), f.versioned.version.major = 2;
    refuse_tensor(&f, DUET_UNSUPPORTED, "DLPack 2.3");
    plain(&f), f.versioned.version.major = 0;
    refuse_tensor(&f, DUET_UNSUPPORTED, "DLPack 0.3");
    plain(&f), f.versioned.version.minor = 99;
    duet_matrix *m = duet_from_dlpack(&f.versioned, DUET_DLPACK_LEGACY);
    CHECK(m != NULL, "a later minor version: %s", duet_error());
    duet_free(&m);
    CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    CHECK(!duet_from_dlpack(NULL, DUET_DLPACK_LEGACY) && duet_error_status() == DUET_BAD_ARGUMENT, "NULL");
    CHECK(!duet_from_dlpack_legacy(NULL, DUET_DLPACK_LEGACY) && duet_error_status() == DUET_BAD_ARGUMENT,
          "NULL");
    tap_point("versions and addresses that cannot be used are refused");
}

static void refuse_export(duet_matrix *m, duet_dlpack_options o, duet_status want, const char *text)
{
    const int64_t live = duet_live(NULL);
    struct DLManagedTensorVersioned *t = duet_to_dlpack(m, &o);
    CHECK(!t && duet_error_status() == want && strstr(duet_error(), text) &&
              strstr(duet_error(), "test_dlpack.c:"),
          "\"%s\": status %d: %s", text, (int)duet_error_status(), duet_error());
    if (t) t->deleter(t);
    CHECK(duet_live(NULL) == live, "\"%s\": a matrix is left", text);
}

static void test_exports_refused(void)
{
    duet_matrix *m = duet_new(DUET_F32, 3), *wide = duet_broadcast_to(m, 2, 3),
                *constant = duet_wrap_const(numbers, DUET_F64, N);
    refuse_export(NULL, (duet_dlpack_options){ DUET_AUTO }, DUET_BAD_ARGUMENT, "must not be NULL");
    refuse_export(m, (duet_dlpack_options){ (duet_place)7 }, DUET_BAD_ARGUMENT, "place (7)");
    refuse_export(m, (duet_dlpack_options){ .writable = 2 }, DUET_BAD_ARGUMENT, "writable (2)");
    refuse_export(m, (duet_dlpack_options){ .copy = -1 }, DUET_BAD_ARGUMENT, "copy (-1)");
    refuse_export(wide, (duet_dlpack_options){ .writable = 1 }, DUET_BAD_ARGUMENT, "repeats");
    refuse_export(constant, (duet_dlpack_options){ .writable = 1 }, DUET_BAD_ARGUMENT, "must not be written");
    CHECK(!duet_to_dlpack_legacy(constant, NULL) && strstr(duet_error(), "must not be written"), "%s",
          duet_error());
    DLManagedTensor *t = duet_to_dlpack_legacy(m, NULL);
    CHECK(t && t->dl_tensor.data == duet_read(m), "%s", duet_error());
    duet_matrix *back = t ? duet_from_dlpack_legacy(t, DUET_DLPACK_LEGACY) : NULL;
    CHECK(back && back->storage == m->storage && duet_set(back, 1) == DUET_OK, "%s", duet_error());
    duet_free(&back, &wide, &constant, &m);
    tap_point("exports that cannot be made are refused");
}

/* ---- lifetimes ---- */

static void test_lifetimes(void)
{
    for (int first = 0; first < 2; first++) { /* who ends first: the matrix or the tensor */
        duet_matrix *m = duet_full(DUET_F64, 7, 100);
        struct DLManagedTensorVersioned *t = duet_to_dlpack(m, NULL);
        const double *p = t ? t->dl_tensor.data : NULL;
        CHECK(p && p[99] == 7, "%s", duet_error());
        if (first == 0) duet_free(&m);
        for (int i = 0; i < 5; i++) { /* others that might get the same memory */
            duet_matrix *other = duet_full(DUET_F64, i, 100);
            CHECK(p && p[0] == 7 && p[99] == 7, "the memory was given to another matrix");
            duet_free(&other);
        }
        if (t) t->deleter(t);
        const double *q = first ? duet_read(m) : NULL;
        if (first) CHECK(q && q[0] == 7, "%s", duet_error());
        duet_free(&m);
    }
    for (int views = 0; views < 2; views++) {
        foreign f;
        plain(&f);
        duet_matrix *m = duet_from_dlpack(&f.versioned, DUET_DLPACK_LEGACY), *v = duet_row(m, 1);
        duet_matrix **ends[2] = { views ? &v : &m, views ? &m : &v };
        duet_free(ends[0]);
        CHECK(f.deleted == 0, "deleted while a view exists");
        duet_free(ends[1]);
        CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    }
    foreign f;
    plain(&f); /* others may not know a deleter */
    f.versioned.deleter = NULL;
    duet_matrix *m = duet_from_dlpack(&f.versioned, DUET_DLPACK_LEGACY);
    CHECK(m && duet_set(m, 2) == DUET_OK && duet_read(m) && numbers[0] == 2, "%s", duet_error());
    duet_free(&m);
    tap_point("either side may end first, and views keep the memory");
}

/* A chain of exports and imports: each tensor of the one before. */
static void test_chain(void)
{
    foreign f;
    plain(&f);
    duet_matrix *m = duet_from_dlpack(&f.versioned, DUET_DLPACK_LEGACY);
    for (int i = 0; i < 20 && m; i++) {
        const duet_dlpack_options o = { .writable = 1 };
        struct DLManagedTensorVersioned *t = duet_to_dlpack(m, &o);
        duet_free(&m);
        CHECK(t && f.deleted == 0, "%s", duet_error());
        m = t ? duet_from_dlpack(t, DUET_DLPACK_LEGACY) : NULL;
    }
    CHECK(m && duet_set(m, 5) == DUET_OK && duet_read(m) && numbers[5] == 5 && f.deleted == 0, "%s",
          duet_error());
    duet_free(&m);
    CHECK(f.deleted == 1, "deleted %d times", f.deleted);
    tap_point("a chain of twenty exchanges uses the first memory and ends it once");
}

/* ---- other ways to leave the matrix alone ---- */

static void test_recording(void)
{
    duet_matrix *m = duet_full(DUET_F32, 1, 8), *n = duet_new(DUET_F32, 8);
    struct DLManagedTensorVersioned *t = NULL;
    const duet_dlpack_options copies = { .copy = 1 };
    CHECK(duet_record_begin() == DUET_OK, "%s", duet_error());
    CHECK(duet_set(n, duet_add(m, 1)) == DUET_OK, "%s", duet_error());
    t = duet_to_dlpack(m, &copies);
    duet_recording *rec = duet_record_end();
    const float *p = t ? t->dl_tensor.data : NULL;
    CHECK(rec && p && p[7] == 1 && t->dl_tensor.data != duet_read(m), "%s", duet_error());
    CHECK(duet_set(m, 3) == DUET_OK && duet_replay(rec) == DUET_OK, "%s", duet_error());
    CHECK(p && p[7] == 1 && ((const float *)duet_read(n))[7] == 4, "the copy was recorded");
    if (t) t->deleter(t);
    FILE *nowhere = fopen("/dev/null", "w");
    t = NULL;
    DUET_EXPLAIN(nowhere) t = duet_to_dlpack(m, &copies);
    CHECK(t && ((const float *)t->dl_tensor.data)[0] == 3, "%s", duet_error());
    if (t) t->deleter(t);
    if (nowhere) fclose(nowhere);
    duet_recording_free(&rec);
    duet_free(&m, &n);
    tap_point("copies are neither recorded nor explained");
}

/* ---- threads ---- */

enum { THREADS = 6, TURNS = 400, SLOTS_OF_TENSORS = 8 };
static struct DLManagedTensorVersioned *slots[SLOTS_OF_TENSORS];
static foreign tensors[THREADS][TURNS];
static double shared_memory[THREADS][64];
static int made_of[THREADS];

/* Threads put tensors into slots, and take those of others, which they import, use and free. */
static void *exchange_all(void *arg)
{
    const int own = (int)(intptr_t)arg;
    rng mine = rng_new((uint64_t)own + 100);
    for (int i = 0; i < TURNS; i++) {
        struct DLManagedTensorVersioned *t = NULL;
        if (rng_chance(&mine, 50)) {
            foreign *f = &tensors[own][i];
            foreign_init(f, shared_memory[own], DUET_F64, 1, (const int64_t[]){ 64 }, NULL);
            f->versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
            t = &f->versioned;
            made_of[own]++;
        } else {
            duet_matrix *m = duet_full(DUET_F64, 3, 64);
            t = duet_to_dlpack(m, NULL);
            CHECK(t != NULL, "%s", duet_error());
            duet_free(&m);
        }
        t = __atomic_exchange_n(&slots[rng_below(&mine, SLOTS_OF_TENSORS)], t, __ATOMIC_ACQ_REL);
        if (!t) continue;
        duet_matrix *m = duet_from_dlpack(t, DUET_DLPACK_NO_SYNC);
        double sum = -1;
        CHECK(m && duet_item(duet_sum(m), &sum) == DUET_OK && sum == 192, "%g: %s", sum, duet_error());
        struct DLManagedTensorVersioned *again = m ? duet_to_dlpack(m, NULL) : NULL;
        duet_free(&m);
        if (again) again->deleter(again);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t t[THREADS];
    const int before = foreign_deleted;
    const int64_t live = duet_live(NULL);
    int made = 0;
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < 64; k++) shared_memory[i][k] = 3;
    for (int i = 0; i < THREADS; i++) pthread_create(&t[i], NULL, exchange_all, (void *)(intptr_t)i);
    for (int i = 0; i < THREADS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < SLOTS_OF_TENSORS; i++)
        if (slots[i]) slots[i]->deleter(slots[i]);
    for (int i = 0; i < THREADS; i++) {
        made += made_of[i];
        for (int k = 0; k < TURNS; k++)
            CHECK(tensors[i][k].deleted <= 1, "deleted %d times", tensors[i][k].deleted);
    }
    CHECK(foreign_deleted - before == made && duet_live(NULL) == live, "%d of %d were deleted",
          foreign_deleted - before, made);
    tap_point("six threads exchange tensors; each deleter is called once, by any thread");
}

/* ---- the exchange table ---- */

static char said[300];
static void set_error(void *ctx, const char *kind, const char *message)
{
    ++*(int *)ctx;
    snprintf(said, sizeof said, "%s: %s", kind, message);
}

static int allocate(DLTensor t, struct DLManagedTensorVersioned **out, int *errors)
{
    return duet_dlpack_exchange()->managed_tensor_allocator(&t, out, errors, set_error);
}

static void test_table(void)
{
    const struct DLPackExchangeAPI *x = duet_dlpack_exchange();
    int64_t sizes[] = { 2, 3 };
    int errors = 0;
    void *stream = &errors;
    struct DLManagedTensorVersioned *t;
    DLTensor like = { NULL, { kDLCPU, 0 }, 2, { kDLFloat, 32, 1 }, sizes, NULL, 0 };
    CHECK(x && x->header.version.major == 1 && x->header.version.minor == 3 && !x->header.prev_api,
          "the header");
    CHECK(allocate(like, &t, &errors) == 0 && t && !errors, "%s", said);
    duet_matrix *m = t ? duet_from_dlpack(t, DUET_DLPACK_LEGACY) : NULL;
    CHECK(m && duet_rank(m) == 2 && duet_size(m, 1) == 3 && duet_set(m, 4) == DUET_OK, "%s", duet_error());
    duet_free(&m);
    like.dtype.code = kDLFloat8_e5m2, like.dtype.bits = 8;
    CHECK(allocate(like, &t, &errors) == -1 && !t && errors == 1 && strstr(said, "BufferError: "), "%s",
          said);
    like.dtype = (DLDataType){ kDLFloat, 32, 1 }, sizes[0] = -1;
    CHECK(allocate(like, &t, &errors) == -1 && !t && errors == 2 && strstr(said, "ValueError: "), "%s", said);
    sizes[0] = 1, like.device.device_type = kDLMetal;
    CHECK(allocate(like, &t, &errors) == -1 && !t && errors == 3 && strstr(said, "Metal"), "%s", said);
    like.device.device_type = kDLCPU, sizes[0] = INT64_C(1) << 50;
    if (!by_sanitizer) /* it would end the program */
        CHECK(allocate(like, &t, &errors) == -1 && !t && errors == 4 && strstr(said, "MemoryError: "), "%s",
              said);
    CHECK(x->current_work_stream(kDLCPU, 0, &stream) == 0 && !stream, "a stream of the CPU");
    const DLDevice on = duet_dlpack_device(NULL);
    CHECK(on.device_type == kDLCPU && on.device_id == 0, "the device of NULL");
    tap_point("the exchange table");
}

int main(int argc, char **argv)
{
    const int trials = trial_count(argc, argv, 300, 3000);
    r = rng_new(argc > 2 ? (uint64_t)atoll(argv[2]) : 1);
    test_import(trials);
    test_export(trials);
    test_types_refused();
    test_devices_refused();
    test_shapes_refused();
    test_addresses_refused();
    test_exports_refused();
    test_lifetimes();
    test_chain();
    test_recording();
    test_threads();
    test_table();
    return tap_end();
}
