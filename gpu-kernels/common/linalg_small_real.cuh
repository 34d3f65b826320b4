/* linalg_small_real.cuh - the algorithms of core/small_matrix_ops.h for real elements. */
#define E            T
#define PARTS        1
#define SIZE(x)      fabs(x)
#define RE(x)        (x)
#define IM(x)        T(0)
#define MAKE(re, im) T(re)
#define CONJ(x)      (x)
#include "small_matrix_ops.h"
#undef E
#undef PARTS
#undef SIZE
#undef RE
#undef IM
#undef MAKE
#undef CONJ
