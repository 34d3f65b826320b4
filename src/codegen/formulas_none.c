/* formulas_none.c - for builds without a C++ compiler: no formulas. */
#include "formula.h"

const formula_table formulas_f32, formulas_f64, formulas_i64, formulas_u64;
