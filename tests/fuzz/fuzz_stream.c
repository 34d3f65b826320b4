/* fuzz_stream.c - the fuzz target of duet_read_npy and duet_read_market. The first byte selects the function,
 * and whether the size of the stream is known. */
#include "fuzz.h"
#include <string.h>

typedef struct source {
    const uint8_t *bytes;
    size_t size;
} source;

static ssize_t read_source(void *cookie, char *to, size_t most)
{
    source *s = cookie;
    const size_t n = s->size < most ? s->size : most;
    memcpy(to, s->bytes, n);
    s->bytes += n;
    s->size -= n;
    return (ssize_t)n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!size) return 0;
    source s = { bytes + 1, size - 1 };
    FILE *f = *bytes & 2 ? fopen(file_of(bytes + 1, size - 1), "rb")
                         : fopencookie(&s, "rb", (cookie_io_functions_t){ .read = read_source });
    expect(f != NULL, "the stream could not be opened");
    for (;;) {
        duet_matrix *m = *bytes & 1 ? duet_read_market(f) : duet_read_npy(f);
        if (!m) break;
        check_loaded(m, 2 * size + 2);
    }
    const duet_status status = duet_error_status();
    fclose(f);
    expect(status != DUET_OK && status != DUET_NO_MEMORY, "the status is wrong");
    return 0;
}
