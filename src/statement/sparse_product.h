/* sparse_product.h - the product of two sparse matrices: its parts, which are ranges of rows, and the
 * functions that make them (sparse_product_rows.c). */
#ifndef SPARSE_PRODUCT_H
#define SPARSE_PRODUCT_H

#include "sparse.h"
#include "sparse_parts.h"

typedef struct product {
    const char *who;
    sparse_view a, b;
    parts parts;
    int64_t start[PARTS_MAX + 1]; /* where the elements of each part are written, and where they end */
    int64_t *offset;              /* rows + 1; offset[r + 1] belongs to row r: see below */
    bool counted;                 /* product_fill reads offset, which has the row offsets */
    bool marks;                   /* `mark` is used: there are enough products to pay for clearing it */
    char *room;                   /* memory for the row that a part is making */
    size_t room_bytes;
    void *columns, *values; /* where elements are written */
    bool wide;              /* `columns` has i64 */
    sparse_lists l;         /* the result */
} product;

/* What a part has while it makes a row. */
typedef struct product_row {
    union {
        void *sum;      /* of each column, while elements are computed */
        uint32_t *mark; /* of each column, while they are counted: the last row that has it */
    };
    /* A bit for each column, and for each word of these bits that is not 0. All are 0 between rows. */
    uint64_t *used, *words;
} product_row;

/* The bytes that a part needs, and where they are. */
size_t product_row_bytes(const product *p);
product_row product_row_of(const product *p, int part);

/* Functions of part `part` of a product. They set offset[r + 1], for each row r of the part:
 *     product_weigh   to the number of products of two elements
 *     product_count   to the number of elements, if it is not the number of products, which is there
 *     product_fill    to the number of elements, which it writes, unless they were counted */
part_function product_weigh, product_count, product_fill;

#endif
