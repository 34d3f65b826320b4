/* linalg_small_pair.cuh - the algorithms of core/small_matrix_ops.h for complex elements. */
#define E            pair
#define PARTS        2
#define SIZE(x)      (fabs((x).re) + fabs((x).im))
#define RE(x)        ((x).re)
#define IM(x)        ((x).im)
#define MAKE(re, im) make_pair_of(T(re), T(im))
#define CONJ(x)      make_pair_of((x).re, -(x).im)
#include "small_matrix_ops.h"
#undef E
#undef PARTS
#undef SIZE
#undef RE
#undef IM
#undef MAKE
#undef CONJ
