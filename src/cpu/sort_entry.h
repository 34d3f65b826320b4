/* sort_entry.h - keys with the indices of their elements, as they are sorted. */
#ifndef SORT_ENTRY_H
#define SORT_ENTRY_H

#include <stdint.h>

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

/* Insertion sort; stable. */
static inline void insert_sort(entry *x, int64_t n)
{
    for (int64_t i = 1; i < n; i++) {
        const entry e = x[i];
        int64_t j = i;
        for (; j > 0 && x[j - 1].key > e.key; j--) x[j] = x[j - 1];
        x[j] = e;
    }
}

#endif
