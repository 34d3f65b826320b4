/* typed.h - pointers to elements with their C type. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_TYPED_H
#define DUET_TYPED_H

/* Return a pointer as duet_read, duet_update and duet_overwrite do, after a check that the elements of m have
 * the given type.
 *     duet_read_as        a pointer for reading
 *     duet_update_as      a pointer for reading and writing
 *     duet_overwrite_as   a pointer for writing every element
 * duet_read_f32(m) and the other functions below return a pointer to the C type of the elements, so that
 * the compiler reports an assignment to a pointer of another type:
 *     float *p = duet_overwrite_f32(m);
 * bool elements are bytes (uint8_t), f16 and bf16 elements are their bits (uint16_t). Complex elements are
 * float _Complex and double _Complex in C. In C++ they are std::complex, for which you include <complex>.
 * Owner     the matrix; do not free the pointer
 * Errors    NULL: as duet_read, and BAD_TYPE: the element type of m is not the given one */
DUET_API const void *duet_read_as(const duet_matrix *m, duet_dtype type);
DUET_API void *duet_update_as(duet_matrix *m, duet_dtype type);
DUET_API void *duet_overwrite_as(duet_matrix *m, duet_dtype type);

#define DUET_ACCESS(name, type, NAME)                                                                        \
    static inline const type *duet_read_##name(const duet_matrix *m)                                         \
    {                                                                                                        \
        return (const type *)duet_read_as(m, DUET_##NAME);                                                   \
    }                                                                                                        \
    static inline type *duet_update_##name(duet_matrix *m)                                                   \
    {                                                                                                        \
        return (type *)duet_update_as(m, DUET_##NAME);                                                       \
    }                                                                                                        \
    static inline type *duet_overwrite_##name(duet_matrix *m)                                                \
    {                                                                                                        \
        return (type *)duet_overwrite_as(m, DUET_##NAME);                                                    \
    }
DUET_ACCESS(f32, float, F32)
DUET_ACCESS(f64, double, F64)
DUET_ACCESS(i8, int8_t, I8)
DUET_ACCESS(i16, int16_t, I16)
DUET_ACCESS(i32, int32_t, I32)
DUET_ACCESS(i64, int64_t, I64)
DUET_ACCESS(u8, uint8_t, U8)
DUET_ACCESS(u16, uint16_t, U16)
DUET_ACCESS(u32, uint32_t, U32)
DUET_ACCESS(u64, uint64_t, U64)
DUET_ACCESS(bool, uint8_t, BOOL)
DUET_ACCESS(f16, uint16_t, F16)
DUET_ACCESS(bf16, uint16_t, BF16)
#ifndef __cplusplus /* in C++ there are only the macros of call_site.h */
DUET_ACCESS(c64, float _Complex, C64)
DUET_ACCESS(c128, double _Complex, C128)
#endif
#undef DUET_ACCESS

#endif
