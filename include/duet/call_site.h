/* call_site.h - macros that put the file and line of a call in front of its error text. There is one
 * for each function that makes matrices or views, accesses elements, explains, records, replays, or
 * uses files, and in C++ for each statement. Part of duet.h. Write (duet_row)(m, i) to call a function
 * without its macro. */
#include <duet/duet.h> /* which includes this */
#ifndef DUET_CALL_SITE_H
#define DUET_CALL_SITE_H

#ifndef DUET_HERE
#define DUET_HERE    __FILE__ ":" DUET_STR(__LINE__)
#define DUET_STR(x)  DUET_STR_(x)
#define DUET_STR_(x) #x
#endif

/* Each of these returns its first argument. If that is a failure, it puts `site` in front of the text
 * of duet_error(). duet_matrix_at stores `site` in a new matrix, for duet_live. */
static inline DUET_MUST duet_matrix *duet_matrix_at(duet_matrix *m, const char *site)
{
    if (m) duet_created_at(m, site);
    else duet_error_at(site);
    return m;
}
static inline DUET_MUST duet_sparse *duet_sparse_at(duet_sparse *s, const char *site)
{
    if (s) duet_sparse_created_at(s, site);
    else duet_error_at(site);
    return s;
}
static inline void *duet_pointer_at(void *p, const char *site)
{
    if (!p) duet_error_at(site);
    return p;
}
static inline const void *duet_const_pointer_at(const void *p, const char *site)
{
    if (!p) duet_error_at(site);
    return p;
}
static inline DUET_MUST duet_recording *duet_recording_at(duet_recording *r, const char *site)
{
    if (!r) duet_error_at(site);
    return r;
}
static inline DUET_MUST char **duet_names_at(char **names, const char *site)
{
    if (!names) duet_error_at(site);
    return names;
}
static inline duet_status duet_plain_status_at(duet_status s, const char *site)
{
    if (s != DUET_OK) duet_error_at(site);
    return s;
}
static inline DUET_MUST duet_status duet_status_at(duet_status s, const char *site)
{
    return duet_plain_status_at(s, site);
}

#ifdef __cplusplus
#define DUET_OPERAND(e) (e) /* converted by a constructor */
#else
#define DUET_OPERAND(e) DUET(e)
#endif
#define DUET_MATRIX_HERE(function, ...) duet_matrix_at((function)(__VA_ARGS__), DUET_HERE)
#define DUET_SPARSE_HERE(function, ...) duet_sparse_at((function)(__VA_ARGS__), DUET_HERE)
#define DUET_STATUS_HERE(function, ...) duet_status_at((function)(__VA_ARGS__), DUET_HERE)

#define duet_new_shape(...)            DUET_MATRIX_HERE(duet_new_shape, __VA_ARGS__)
#define duet_new_split_shape(...)      DUET_MATRIX_HERE(duet_new_split_shape, __VA_ARGS__)
#define duet_new_replicated_shape(...) DUET_MATRIX_HERE(duet_new_replicated_shape, __VA_ARGS__)
#define duet_wrap_shape(...)           DUET_MATRIX_HERE(duet_wrap_shape, __VA_ARGS__)
#define duet_wrap_strided(...)         DUET_MATRIX_HERE(duet_wrap_strided, __VA_ARGS__)
#define duet_wrap_columns_shape(...)   DUET_MATRIX_HERE(duet_wrap_columns_shape, __VA_ARGS__)
#define duet_wrap_const_shape(...)     DUET_MATRIX_HERE(duet_wrap_const_shape, __VA_ARGS__)
#define duet_wrap_const_strided(...)   DUET_MATRIX_HERE(duet_wrap_const_strided, __VA_ARGS__)
#define duet_wrap_device_shape(...)    DUET_MATRIX_HERE(duet_wrap_device_shape, __VA_ARGS__)
#define duet_wrap_device_strided(...)  DUET_MATRIX_HERE(duet_wrap_device_strided, __VA_ARGS__)
#define duet_indexed_by(...)           DUET_MATRIX_HERE(duet_indexed_by, __VA_ARGS__)
#define duet_stepped(...)              DUET_MATRIX_HERE(duet_stepped, __VA_ARGS__)
#define duet_picked(...)               DUET_MATRIX_HERE(duet_picked, __VA_ARGS__)
#define duet_flipped(...)              DUET_MATRIX_HERE(duet_flipped, __VA_ARGS__)
#define duet_slice(...)                DUET_MATRIX_HERE(duet_slice, __VA_ARGS__)
#define duet_row(...)                  DUET_MATRIX_HERE(duet_row, __VA_ARGS__)
#define duet_column(...)               DUET_MATRIX_HERE(duet_column, __VA_ARGS__)
#define duet_submatrix(...)            DUET_MATRIX_HERE(duet_submatrix, __VA_ARGS__)
#define duet_diagonal(...)             DUET_MATRIX_HERE(duet_diagonal, __VA_ARGS__)
#define duet_transposed(...)           DUET_MATRIX_HERE(duet_transposed, __VA_ARGS__)
#define duet_permuted_axes(...)        DUET_MATRIX_HERE(duet_permuted_axes, __VA_ARGS__)
#define duet_expanded(...)             DUET_MATRIX_HERE(duet_expanded, __VA_ARGS__)
#define duet_squeezed(...)             DUET_MATRIX_HERE(duet_squeezed, __VA_ARGS__)
#define duet_reshaped_shape(...)       DUET_MATRIX_HERE(duet_reshaped_shape, __VA_ARGS__)
#define duet_broadcast_to_shape(...)   DUET_MATRIX_HERE(duet_broadcast_to_shape, __VA_ARGS__)
#define duet_split(...)                DUET_STATUS_HERE(duet_split, __VA_ARGS__)
#define duet_magic(...)                DUET_STATUS_HERE(duet_magic, __VA_ARGS__)
#define duet_declare(...)              DUET_STATUS_HERE(duet_declare, __VA_ARGS__)
#define duet_zeros_shape(...)          DUET_MATRIX_HERE(duet_zeros_shape, __VA_ARGS__)
#define duet_ones_shape(...)           DUET_MATRIX_HERE(duet_ones_shape, __VA_ARGS__)
#define duet_from_array_shape(...)     DUET_MATRIX_HERE(duet_from_array_shape, __VA_ARGS__)
#define duet_eye(...)                  DUET_MATRIX_HERE(duet_eye, __VA_ARGS__)
#define duet_arange(...)               DUET_MATRIX_HERE(duet_arange, __VA_ARGS__)
#define duet_linspace(...)             DUET_MATRIX_HERE(duet_linspace, __VA_ARGS__)
#define duet_copy(...)                 DUET_MATRIX_HERE(duet_copy, __VA_ARGS__)
#define duet_to_array(...)             DUET_STATUS_HERE(duet_to_array, __VA_ARGS__)
#define duet_set_threads(...)          duet_plain_status_at((duet_set_threads)(__VA_ARGS__), DUET_HERE)
#define duet_resize_shape(...)         DUET_STATUS_HERE(duet_resize_shape, __VA_ARGS__)

#ifdef __cplusplus /* programs that use these macros include <complex> */
#define DUET_C64_  std::complex<float>
#define DUET_C128_ std::complex<double>
#else
#define DUET_C64_  float _Complex
#define DUET_C128_ double _Complex
#endif
#define duet_read(...)         duet_const_pointer_at((duet_read)(__VA_ARGS__), DUET_HERE)
#define duet_update(...)       duet_pointer_at((duet_update)(__VA_ARGS__), DUET_HERE)
#define duet_overwrite(...)    duet_pointer_at((duet_overwrite)(__VA_ARGS__), DUET_HERE)
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
#define duet_read_c64(m)       ((const DUET_C64_ *)duet_const_pointer_at(duet_read_as(m, DUET_C64), DUET_HERE))
#define duet_update_c64(m)     ((DUET_C64_ *)duet_pointer_at(duet_update_as(m, DUET_C64), DUET_HERE))
#define duet_overwrite_c64(m)  ((DUET_C64_ *)duet_pointer_at(duet_overwrite_as(m, DUET_C64), DUET_HERE))
#define duet_read_c128(m)      ((const DUET_C128_ *)duet_const_pointer_at(duet_read_as(m, DUET_C128), DUET_HERE))
#define duet_update_c128(m)    ((DUET_C128_ *)duet_pointer_at(duet_update_as(m, DUET_C128), DUET_HERE))
#define duet_overwrite_c128(m) ((DUET_C128_ *)duet_pointer_at(duet_overwrite_as(m, DUET_C128), DUET_HERE))

#define duet_device_read(...)      duet_const_pointer_at((duet_device_read)(__VA_ARGS__), DUET_HERE)
#define duet_device_update(...)    duet_pointer_at((duet_device_update)(__VA_ARGS__), DUET_HERE)
#define duet_device_overwrite(...) duet_pointer_at((duet_device_overwrite)(__VA_ARGS__), DUET_HERE)
#define duet_stream()              duet_pointer_at((duet_stream)(), DUET_HERE)
#define duet_synchronize()         duet_status_at((duet_synchronize)(), DUET_HERE)
#define duet_recover()             duet_status_at((duet_recover)(), DUET_HERE)
#define duet_explain(out, m, e)    duet_plain_status_at((duet_explain)(out, m, DUET_OPERAND(e)), DUET_HERE)
#define duet_explain_all(...)      duet_plain_status_at((duet_explain_all)(__VA_ARGS__), DUET_HERE)
#define duet_print_expr(out, e)    duet_plain_status_at((duet_print_expr)(out, DUET_OPERAND(e)), DUET_HERE)
#define duet_record_begin()        duet_status_at((duet_record_begin)(), DUET_HERE)
#define duet_record_end()          duet_recording_at((duet_record_end)(), DUET_HERE)
#define duet_replay(...)           DUET_STATUS_HERE(duet_replay, __VA_ARGS__)
#define duet_auto_replay(...)      duet_plain_status_at((duet_auto_replay)(__VA_ARGS__), DUET_HERE)
#define duet_arena_limit(...)      duet_plain_status_at((duet_arena_limit)(__VA_ARGS__), DUET_HERE)
#define duet_memory_limit(...)     duet_plain_status_at((duet_memory_limit)(__VA_ARGS__), DUET_HERE)

#define duet_load_npy(...)      DUET_MATRIX_HERE(duet_load_npy, __VA_ARGS__)
#define duet_load_npz(...)      DUET_MATRIX_HERE(duet_load_npz, __VA_ARGS__)
#define duet_load_market(...)   DUET_MATRIX_HERE(duet_load_market, __VA_ARGS__)
#define duet_load_npy_into(...) DUET_STATUS_HERE(duet_load_npy_into, __VA_ARGS__)
#define duet_save_npy(...)      DUET_STATUS_HERE(duet_save_npy, __VA_ARGS__)
#define duet_save_npz(...)      DUET_STATUS_HERE(duet_save_npz, __VA_ARGS__)
#define duet_save_market(...)   DUET_STATUS_HERE(duet_save_market, __VA_ARGS__)
#define duet_read_npy(...)      DUET_MATRIX_HERE(duet_read_npy, __VA_ARGS__)
#define duet_read_market(...)   DUET_MATRIX_HERE(duet_read_market, __VA_ARGS__)
#define duet_write_npy(...)     DUET_STATUS_HERE(duet_write_npy, __VA_ARGS__)
#define duet_write_market(...)  DUET_STATUS_HERE(duet_write_market, __VA_ARGS__)
#define duet_print_octave(...)  duet_plain_status_at((duet_print_octave)(__VA_ARGS__), DUET_HERE)
#define duet_load_limits(...)   duet_plain_status_at((duet_load_limits)(__VA_ARGS__), DUET_HERE)
#define duet_names_npz(...)     duet_names_at((duet_names_npz)(__VA_ARGS__), DUET_HERE)

#define duet_sparse_from_coo(...)     DUET_SPARSE_HERE(duet_sparse_from_coo, __VA_ARGS__)
#define duet_sparse_from_csr(...)     DUET_SPARSE_HERE(duet_sparse_from_csr, __VA_ARGS__)
#define duet_sparse_from_dense(...)   DUET_SPARSE_HERE(duet_sparse_from_dense, __VA_ARGS__)
#define duet_sparse_copy(...)         DUET_SPARSE_HERE(duet_sparse_copy, __VA_ARGS__)
#define duet_sparse_transposed(...)   DUET_SPARSE_HERE(duet_sparse_transposed, __VA_ARGS__)
#define duet_sparse_slice(...)        DUET_SPARSE_HERE(duet_sparse_slice, __VA_ARGS__)
#define duet_sparse_add(...)          DUET_SPARSE_HERE(duet_sparse_add, __VA_ARGS__)
#define duet_sparse_multiply(...)     DUET_SPARSE_HERE(duet_sparse_multiply, __VA_ARGS__)
#define duet_sparse_product(...)      DUET_SPARSE_HERE(duet_sparse_product, __VA_ARGS__)
#define duet_sparse_load_market(...)  DUET_SPARSE_HERE(duet_sparse_load_market, __VA_ARGS__)
#define duet_sparse_read_market(...)  DUET_SPARSE_HERE(duet_sparse_read_market, __VA_ARGS__)
#define duet_sparse_to_coo(...)       DUET_STATUS_HERE(duet_sparse_to_coo, __VA_ARGS__)
#define duet_sparse_to_csr(...)       DUET_STATUS_HERE(duet_sparse_to_csr, __VA_ARGS__)
#define duet_sparse_save_market(...)  DUET_STATUS_HERE(duet_sparse_save_market, __VA_ARGS__)
#define duet_sparse_write_market(...) DUET_STATUS_HERE(duet_sparse_write_market, __VA_ARGS__)
#define duet_sparse_with_values(s, e) duet_sparse_at((duet_sparse_with_values)(s, DUET_OPERAND(e)), DUET_HERE)

/* These take as many arguments as there are: in C they are macros (lift.h), in C++ templates (cpp.h). */
#ifdef __cplusplus
#define duet_new(...)            DUET_MATRIX_HERE(duet_new, __VA_ARGS__)
#define duet_wrap(...)           DUET_MATRIX_HERE(duet_wrap, __VA_ARGS__)
#define duet_wrap_columns(...)   DUET_MATRIX_HERE(duet_wrap_columns, __VA_ARGS__)
#define duet_wrap_const(...)     DUET_MATRIX_HERE(duet_wrap_const, __VA_ARGS__)
#define duet_wrap_device(...)    DUET_MATRIX_HERE(duet_wrap_device, __VA_ARGS__)
#define duet_new_split(...)      DUET_MATRIX_HERE(duet_new_split, __VA_ARGS__)
#define duet_new_replicated(...) DUET_MATRIX_HERE(duet_new_replicated, __VA_ARGS__)
#define duet_zeros(...)          DUET_MATRIX_HERE(duet_zeros, __VA_ARGS__)
#define duet_ones(...)           DUET_MATRIX_HERE(duet_ones, __VA_ARGS__)
#define duet_full(...)           DUET_MATRIX_HERE(duet_full, __VA_ARGS__)
#define duet_from_array(...)     DUET_MATRIX_HERE(duet_from_array, __VA_ARGS__)
#define duet_reshaped(...)       DUET_MATRIX_HERE(duet_reshaped, __VA_ARGS__)
#define duet_broadcast_to(...)   DUET_MATRIX_HERE(duet_broadcast_to, __VA_ARGS__)
#define duet_resize(...)         DUET_STATUS_HERE(duet_resize, __VA_ARGS__)
#define duet_permuted(...)       DUET_MATRIX_HERE(duet_permuted, __VA_ARGS__)
#define duet_indexed(...)        DUET_MATRIX_HERE(duet_indexed, __VA_ARGS__)

/* Statements, which in C are macros of lift.h too. */
#define duet_set_all(...)                 DUET_STATUS_HERE(duet_set_all, __VA_ARGS__)
#define duet_items(...)                   DUET_STATUS_HERE(duet_items, __VA_ARGS__)
#define duet_print_all(...)               duet_print_all_at(__VA_ARGS__, DUET_HERE)
#define duet_print(...)                   duet_plain_status_at((duet_print)(__VA_ARGS__), DUET_HERE)
#define duet_set(...)                     duet_set_at(__VA_ARGS__, DUET_HERE)
#define duet_set_on(...)                  duet_set_on_at(__VA_ARGS__, DUET_HERE)
#define duet_set_math(...)                duet_set_math_at(__VA_ARGS__, DUET_HERE)
#define duet_iadd(...)                    duet_iadd_at(__VA_ARGS__, DUET_HERE)
#define duet_isub(...)                    duet_isub_at(__VA_ARGS__, DUET_HERE)
#define duet_imul(...)                    duet_imul_at(__VA_ARGS__, DUET_HERE)
#define duet_idiv(...)                    duet_idiv_at(__VA_ARGS__, DUET_HERE)
#define duet_eval(...)                    duet_eval_at(__VA_ARGS__, DUET_HERE)
#define duet_item(...)                    duet_item_at(__VA_ARGS__, DUET_HERE)
#define duet_hold(...)                    duet_hold_at(__VA_ARGS__, DUET_HERE)
#define duet_drop(...)                    duet_drop_at(__VA_ARGS__, DUET_HERE)
#define duet_masked(...)                  duet_masked_at(__VA_ARGS__, DUET_HERE)
#define duet_nonzero(...)                 duet_nonzero_at(__VA_ARGS__, DUET_HERE)
#define duet_unique(...)                  duet_unique_at(__VA_ARGS__, DUET_HERE)
#define duet_unique_axis(...)             duet_unique_axis_at(__VA_ARGS__, DUET_HERE)
#define duet_random_uniform(...)          duet_random_uniform_at(__VA_ARGS__, DUET_HERE)
#define duet_random_normal(...)           duet_random_normal_at(__VA_ARGS__, DUET_HERE)
#define duet_random_truncated_normal(...) duet_random_truncated_normal_at(__VA_ARGS__, DUET_HERE)
#define duet_random_bernoulli(...)        duet_random_bernoulli_at(__VA_ARGS__, DUET_HERE)
#define duet_random_integers(...)         duet_random_integers_at(__VA_ARGS__, DUET_HERE)
#define duet_random_permutation(...)      duet_random_permutation_at(__VA_ARGS__, DUET_HERE)
#define duet_random_sobol(...)            duet_random_sobol_at(__VA_ARGS__, DUET_HERE)
#define duet_noise_uniform(...)           duet_noise_uniform_at(__VA_ARGS__, DUET_HERE)
#define duet_noise_normal(...)            duet_noise_normal_at(__VA_ARGS__, DUET_HERE)
#define duet_noise_logistic(...)          duet_noise_logistic_at(__VA_ARGS__, DUET_HERE)
#define duet_noise_ranged(...)            duet_noise_ranged_at(__VA_ARGS__, DUET_HERE)
#define duet_noise_bernoulli(...)         duet_noise_bernoulli_at(__VA_ARGS__, DUET_HERE)
#define duet_shuffle(...)                 duet_shuffle_at(__VA_ARGS__, DUET_HERE)
#define duet_sequence(...)                duet_sequence_at(__VA_ARGS__, DUET_HERE)
#define duet_sgd(...)                     duet_sgd_at(__VA_ARGS__, DUET_HERE)
#define duet_adam(...)                    duet_adam_at(__VA_ARGS__, DUET_HERE)
#define duet_adamw(...)                   duet_adamw_at(__VA_ARGS__, DUET_HERE)
#define duet_rmsprop(...)                 duet_rmsprop_at(__VA_ARGS__, DUET_HERE)
#define duet_adagrad(...)                 duet_adagrad_at(__VA_ARGS__, DUET_HERE)
#define duet_convmtx(...)                 duet_convmtx_at(__VA_ARGS__, DUET_HERE)
#define duet_convmtx2(...)                duet_convmtx2_at(__VA_ARGS__, DUET_HERE)
#define duet_lu(...)                      duet_lu_at(__VA_ARGS__, DUET_HERE)
#define duet_qr(...)                      duet_qr_at(__VA_ARGS__, DUET_HERE)
#define duet_svd(...)                     duet_svd_at(__VA_ARGS__, DUET_HERE)
#define duet_eigh(...)                    duet_eigh_at(__VA_ARGS__, DUET_HERE)
#define duet_slogdet(...)                 duet_slogdet_at(__VA_ARGS__, DUET_HERE)
#endif

#endif
