/* columns.h - column-major matrices in device memory, as cuSOLVER takes them, and copies between
 * them and the operands of a step. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "cusolver.h"

layout columns_layout(const columns *c);
/* Takes memory for a matrix of the operands' type, or for n real numbers. */
duet_status columns_take(solver_workspace *b, int64_t rows, int64_t cols, columns *c);
duet_status values_take(solver_workspace *b, int64_t n, columns *c);
/* Takes memory for complex numbers whose parts have the type of the operands' parts. */
duet_status complex_take(solver_workspace *b, int64_t rows, int64_t cols, columns *c);
/* Takes memory for a matrix of f64, or of c128 if the operands are complex. */
duet_status wide_take(solver_workspace *b, int64_t rows, int64_t cols, columns *c);
duet_status doubles_take(solver_workspace *b, int64_t n, columns *c); /* n numbers of f64 */
/* Fills the first rows of c from `from`. */
duet_status columns_fill(const solver_workspace *b, const columns *c, const layout *at, const void *from);
/* Takes memory and copies operand k, or its transpose. */
duet_status columns_read(solver_workspace *b, int k, bool transposed, columns *c);
/* Writes the first rows of c, or their transpose, to output k. */
duet_status columns_write(const solver_workspace *b, const columns *c, bool transposed, int k);
/* Converts elements of one precision to another, both real or both complex. */
duet_status columns_convert(const solver_workspace *b, void *to, const layout *to_at, const void *from,
                            const layout *from_at);
/* c = Q R in place, Q as reflectors with factors tau. */
duet_status columns_qr(solver_workspace *b, const columns *c, void **tau);
/* Conjugates complex elements. */
duet_status columns_conjugate(const solver_workspace *b, const columns *c);
/* Clears the imaginary parts on the diagonal of a Hermitian matrix. */
duet_status columns_diagonal_real(const solver_workspace *b, const columns *c);

#endif
