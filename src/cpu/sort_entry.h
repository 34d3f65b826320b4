/* sort_entry.h - what is sorted: keys, each with the index of its element; and a few of them in order. */
#ifndef ENTRY_H
#define ENTRY_H

#include <stdint.h>

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

/* By insertion: equal keys stay in their order. */
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
