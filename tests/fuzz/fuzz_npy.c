/* fuzz_npy.c - the fuzz target of duet_load_npy and duet_load_npy_into. */
#include "fuzz.h"

/* m: what duet_load_npy has loaded from this file, or NULL. */
static void load_into(const char *path, const duet_matrix *m)
{
    int64_t size[DUET_RANK_MAX] = { 0 };
    for (int a = 0; m && a < duet_rank(m); a++) size[a] = duet_size(m, a);
    duet_matrix *to = m ? duet_new_shape(duet_type(m), duet_rank(m), size) : duet_new(DUET_F32, 3);
    expect(to != NULL, "no memory");
    const duet_status s = duet_load_npy_into(path, to);
    expect((s == DUET_OK) == (m != NULL), "a file can be loaded in one way only");
    duet_free(&to);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *path = file_of(bytes, size);
    duet_matrix *m = duet_load_npy(path);
    load_into(path, m);
    check_loaded(m, size);
    return 0;
}
