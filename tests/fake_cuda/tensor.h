/* tensor.h - operands on the device with every layout, for tests of a machine. The host has a copy of
 * the elements. */
#ifndef TENSOR_H
#define TENSOR_H

#include "dtype.h"
#include "gpu.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Layouts of an operand. */
enum lie { ROWS, COLUMNS, PADDED, GAPS, BACKWARDS, REPEATED, LIES };

typedef struct tensor {
    layout at;
    int64_t first, room; /* offset of its first element; number of elements of the memory */
    double *value;       /* the host's copy of the complete memory */
    void *device;        /* device memory */
} tensor;

static _Thread_local uint64_t tensor_seed = 1;

/* Numbers with few digits, so that products with few terms are exact. */
static double tensor_random(void)
{
    tensor_seed = tensor_seed * 6364136223846793005u + 1442695040888963407u;
    return (double)((int64_t)(tensor_seed >> 40) % 2001 - 1000) / 64;
}

static void *tensor_pack(const tensor *t)
{
    void *host = malloc((size_t)t->room * 8 + 1);
    for (int64_t i = 0; host && i < t->room; i++)
        if (t->at.type == DUET_F32) ((float *)host)[i] = (float)t->value[i];
        else ((double *)host)[i] = t->value[i];
    return host;
}

static void tensor_lay(tensor *t, enum lie lie)
{
    layout *l = &t->at;
    int64_t pitch = lie == GAPS ? 2 : 1;
    for (int k = 0; k < l->rank; k++) {
        int axis = lie == COLUMNS ? k : l->rank - 1 - k;
        if (lie == BACKWARDS) l->stride[axis] = -pitch;
        else if (lie == REPEATED && axis == 0) l->stride[axis] = 0;
        else l->stride[axis] = pitch;
        if (lie == REPEATED && axis == 0) continue;
        pitch *= l->size[axis];
        if (lie == PADDED || lie == GAPS) pitch += 3;
    }
    if (pitch > 0) t->room = pitch;
    else t->room = 1;
    if (lie == BACKWARDS && layout_count(l)) t->first = pitch - 1;
    else t->first = 0;
}

/* A tensor of random numbers; on the device once the work of the queue is done. */
static duet_status tensor_new(tensor *t, duet_dtype type, int rank, const int64_t *size, enum lie lie,
                              int queue)
{
    *t = (tensor){ .at = { .type = type, .rank = rank } };
    memcpy(t->at.size, size, sizeof *size * (size_t)rank);
    tensor_lay(t, lie);
    t->value = malloc(sizeof(double) * (size_t)t->room);
    for (int64_t i = 0; i < t->room; i++) t->value[i] = tensor_random();
    TRY(gpu_machine.alloc(DEFAULT_GPU, (size_t)t->room * dtypes[type].bytes, &t->device));
    void *host = tensor_pack(t);
    duet_status s =
        gpu_machine.upload(DEFAULT_GPU, t->device, host, (size_t)t->room * dtypes[type].bytes, queue);
    free(host); /* pageable: the copy has read it */
    return s;
}

/* Copies device memory into the values of the host. */
static duet_status tensor_fetch(tensor *t, int queue)
{
    void *host = tensor_pack(t);
    duet_status s =
        gpu_machine.download(DEFAULT_GPU, host, t->device, (size_t)t->room * dtypes[t->at.type].bytes, queue);
    for (int64_t i = 0; s == DUET_OK && i < t->room; i++)
        t->value[i] = t->at.type == DUET_F32 ? (double)((float *)host)[i] : ((double *)host)[i];
    free(host);
    return s;
}

static void tensor_free(tensor *t)
{
    gpu_machine.free(DEFAULT_GPU, t->device);
    free(t->value);
}

static double *tensor_at(const tensor *t, int64_t i, int64_t j, int64_t k, int64_t l)
{
    const int64_t index[] = { i, j, k, l };
    int64_t at = t->first;
    for (int axis = 0; axis < t->at.rank; axis++) at += index[axis] * t->at.stride[axis];
    return &t->value[at];
}

static void *tensor_data(const tensor *t)
{
    return (char *)t->device + t->first * (int64_t)dtypes[t->at.type].bytes;
}

#endif
