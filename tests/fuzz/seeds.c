/* seeds.c FOLDER - writes the first inputs of the fuzz targets to the folders npy, npz, market, stream,
 * einsum and encoder of FOLDER. */
#include <duet/duet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures;

static void check(int good)
{
    if (good) return;
    fprintf(stderr, "seeds: %s\n", duet_error());
    failures++;
}

static void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    check(f && fwrite(bytes, 1, size, f) == size && !fclose(f));
}

static void write_text(const char *path, const char *text) { write_bytes(path, text, strlen(text)); }

/* Two arrays, after the byte that selects the function. */
static void save_stream(const duet_matrix *m, const duet_matrix *t, const char *name)
{
    char path[100];
    for (int how = 0; how < 4; how++) {
        snprintf(path, sizeof path, "stream/%s-%d", name, how);
        FILE *f = fopen(path, "wb");
        check(f && putc(how, f) == how);
        check(how & 1 ? !duet_write_market(f, m) && !duet_write_market(f, t)
                      : !duet_write_npy(f, m) && !duet_write_npy(f, t));
        check(!fclose(f));
    }
}

static void save(duet_matrix *m, const char *name)
{
    char path[100];
    duet_matrix *t = duet_transposed(m);
    const duet_named list[] = { { "a", m }, { "b", t } };
    snprintf(path, sizeof path, "npy/%s", name);
    check(m && t && duet_save_npy(path, t) == DUET_OK);
    snprintf(path, sizeof path, "npz/%s", name);
    check(duet_save_npz(path, list, 2) == DUET_OK);
    snprintf(path, sizeof path, "market/%s", name);
    check(duet_save_market(path, m) == DUET_OK);
    save_stream(m, t, name);
    duet_free(&t);
    duet_free(&m);
}

/* Random bytes, which are random programs: four types, of six kinds, of increasing length. */
static void save_programs(void)
{
    uint64_t x = 1;
    for (int n = 0; n < 60; n++) {
        char path[100];
        uint8_t bytes[1024];
        const size_t size = 16 + (size_t)n * 16;
        for (size_t i = 0; i < size; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            bytes[i] = (uint8_t)(x >> 56);
        }
        bytes[0] = (uint8_t)(n % 4);
        bytes[1] = (uint8_t)(n / 4 % 6);
        snprintf(path, sizeof path, "encoder/%d", n);
        write_bytes(path, bytes, size);
    }
}

int main(int argc, char **argv)
{
#include "deflated.h"
    static const char *const folders[] = { "npy", "npz", "market", "stream", "einsum", "encoder" };
    if (argc != 2 || chdir(argv[1])) return 2;
    for (int k = 0; k < 6; k++) mkdir(folders[k], 0777);
    save(duet_ones(DUET_F32, 2, 3), "f32");
    save(duet_ones(DUET_C128, 1, 2), "c128");
    save(duet_zeros(DUET_BOOL, 3, 3), "bool");
    save(duet_zeros(DUET_I64, 0, 4), "empty");
    write_bytes("npz/deflated", deflated, sizeof deflated);
    write_text("npy/big", "\x93NUMPY\x02\x03 {'descr': '>i2', 'fortran_order': True, 'shape': (1L,), }\n..");
    write_text("market/sparse", "%%MatrixMarket matrix coordinate real general\n2 3 2\n1 3 1.5\n2 1 -2\n");
    write_text("market/sparse_hermitian",
               "%%MatrixMarket matrix coordinate complex hermitian\n2 2 1\n2 1 3 4\n");
    write_text("market/symmetric", "%%MatrixMarket matrix array real symmetric\n% x\n2 2\n1\n2.5e-3\ninf\n");
    write_text("market/skew", "%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n-2\n3\n");
    write_text("market/hermitian", "%%MatrixMarket matrix array complex hermitian\n2 2\n1 0\n2 3\n4 0\n");
    write_text("einsum/product", "\x01\x01ij,jk->ik");
    write_text("einsum/batch", "\x02\x02"
                               "bij,bjk->bik");
    write_text("einsum/outer", "\x40\x40i,j->ij");
    write_text("einsum/sum", "\x01\x01ij,ij->");
    save_programs();
    return failures > 0;
}
