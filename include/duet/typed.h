/* typed.h - pointers to elements with their C type. Part of duet.h. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_TYPED_H
#define DUET_TYPED_H

/* Do what duet_read, duet_update and duet_overwrite do, for elements of the given type.
 * duet_read_f32(m) and the other functions below return a pointer to the C type of the elements, so that
 * the compiler finds a pointer of another type:
 *     float *p = duet_overwrite_f32(m);
 * bool elements are bytes (uint8_t), f16 and bf16 elements are their bits (uint16_t). Complex elements are
 * float _Complex and double _Complex in C, and std::complex in C++ (duet/duet.hpp).
 * Owner     the matrix; do not free the pointer
 * Errors    NULL: as duet_read, and BAD_TYPE: m has other elements */
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
#ifndef __cplusplus
DUET_ACCESS(c64, float _Complex, C64)
DUET_ACCESS(c128, double _Complex, C128)
#endif
#undef DUET_ACCESS

/* With the source line of the call, for error texts. */
#define duet_read_f32(m)       ((const float *)duet_const_pointer_at((duet_read_f32)(m), DUET_HERE))
#define duet_update_f32(m)     ((float *)duet_pointer_at((duet_update_f32)(m), DUET_HERE))
#define duet_overwrite_f32(m)  ((float *)duet_pointer_at((duet_overwrite_f32)(m), DUET_HERE))
#define duet_read_f64(m)       ((const double *)duet_const_pointer_at((duet_read_f64)(m), DUET_HERE))
#define duet_update_f64(m)     ((double *)duet_pointer_at((duet_update_f64)(m), DUET_HERE))
#define duet_overwrite_f64(m)  ((double *)duet_pointer_at((duet_overwrite_f64)(m), DUET_HERE))
#define duet_read_i8(m)        ((const int8_t *)duet_const_pointer_at((duet_read_i8)(m), DUET_HERE))
#define duet_update_i8(m)      ((int8_t *)duet_pointer_at((duet_update_i8)(m), DUET_HERE))
#define duet_overwrite_i8(m)   ((int8_t *)duet_pointer_at((duet_overwrite_i8)(m), DUET_HERE))
#define duet_read_i16(m)       ((const int16_t *)duet_const_pointer_at((duet_read_i16)(m), DUET_HERE))
#define duet_update_i16(m)     ((int16_t *)duet_pointer_at((duet_update_i16)(m), DUET_HERE))
#define duet_overwrite_i16(m)  ((int16_t *)duet_pointer_at((duet_overwrite_i16)(m), DUET_HERE))
#define duet_read_i32(m)       ((const int32_t *)duet_const_pointer_at((duet_read_i32)(m), DUET_HERE))
#define duet_update_i32(m)     ((int32_t *)duet_pointer_at((duet_update_i32)(m), DUET_HERE))
#define duet_overwrite_i32(m)  ((int32_t *)duet_pointer_at((duet_overwrite_i32)(m), DUET_HERE))
#define duet_read_i64(m)       ((const int64_t *)duet_const_pointer_at((duet_read_i64)(m), DUET_HERE))
#define duet_update_i64(m)     ((int64_t *)duet_pointer_at((duet_update_i64)(m), DUET_HERE))
#define duet_overwrite_i64(m)  ((int64_t *)duet_pointer_at((duet_overwrite_i64)(m), DUET_HERE))
#define duet_read_u8(m)        ((const uint8_t *)duet_const_pointer_at((duet_read_u8)(m), DUET_HERE))
#define duet_update_u8(m)      ((uint8_t *)duet_pointer_at((duet_update_u8)(m), DUET_HERE))
#define duet_overwrite_u8(m)   ((uint8_t *)duet_pointer_at((duet_overwrite_u8)(m), DUET_HERE))
#define duet_read_u16(m)       ((const uint16_t *)duet_const_pointer_at((duet_read_u16)(m), DUET_HERE))
#define duet_update_u16(m)     ((uint16_t *)duet_pointer_at((duet_update_u16)(m), DUET_HERE))
#define duet_overwrite_u16(m)  ((uint16_t *)duet_pointer_at((duet_overwrite_u16)(m), DUET_HERE))
#define duet_read_u32(m)       ((const uint32_t *)duet_const_pointer_at((duet_read_u32)(m), DUET_HERE))
#define duet_update_u32(m)     ((uint32_t *)duet_pointer_at((duet_update_u32)(m), DUET_HERE))
#define duet_overwrite_u32(m)  ((uint32_t *)duet_pointer_at((duet_overwrite_u32)(m), DUET_HERE))
#define duet_read_u64(m)       ((const uint64_t *)duet_const_pointer_at((duet_read_u64)(m), DUET_HERE))
#define duet_update_u64(m)     ((uint64_t *)duet_pointer_at((duet_update_u64)(m), DUET_HERE))
#define duet_overwrite_u64(m)  ((uint64_t *)duet_pointer_at((duet_overwrite_u64)(m), DUET_HERE))
#define duet_read_bool(m)      ((const uint8_t *)duet_const_pointer_at((duet_read_bool)(m), DUET_HERE))
#define duet_update_bool(m)    ((uint8_t *)duet_pointer_at((duet_update_bool)(m), DUET_HERE))
#define duet_overwrite_bool(m) ((uint8_t *)duet_pointer_at((duet_overwrite_bool)(m), DUET_HERE))
#define duet_read_f16(m)       ((const uint16_t *)duet_const_pointer_at((duet_read_f16)(m), DUET_HERE))
#define duet_update_f16(m)     ((uint16_t *)duet_pointer_at((duet_update_f16)(m), DUET_HERE))
#define duet_overwrite_f16(m)  ((uint16_t *)duet_pointer_at((duet_overwrite_f16)(m), DUET_HERE))
#define duet_read_bf16(m)      ((const uint16_t *)duet_const_pointer_at((duet_read_bf16)(m), DUET_HERE))
#define duet_update_bf16(m)    ((uint16_t *)duet_pointer_at((duet_update_bf16)(m), DUET_HERE))
#define duet_overwrite_bf16(m) ((uint16_t *)duet_pointer_at((duet_overwrite_bf16)(m), DUET_HERE))
#define duet_read_c64(m)       ((const float _Complex *)duet_const_pointer_at((duet_read_c64)(m), DUET_HERE))
#define duet_update_c64(m)     ((float _Complex *)duet_pointer_at((duet_update_c64)(m), DUET_HERE))
#define duet_overwrite_c64(m)  ((float _Complex *)duet_pointer_at((duet_overwrite_c64)(m), DUET_HERE))
#define duet_read_c128(m)      ((const double _Complex *)duet_const_pointer_at((duet_read_c128)(m), DUET_HERE))
#define duet_update_c128(m)    ((double _Complex *)duet_pointer_at((duet_update_c128)(m), DUET_HERE))
#define duet_overwrite_c128(m) ((double _Complex *)duet_pointer_at((duet_overwrite_c128)(m), DUET_HERE))

#endif
