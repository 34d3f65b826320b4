/* fast.h - the module _duet_fast: compiled code for the parts of the Python package that take most of
 * the time of a small formula. It has the classes of matrices, nodes and arrays, the operators of
 * arrays, and the evaluation of small formulas.
 *
 * The package works without it: duet/_graph.py and duet/_array.py have the same classes and functions
 * in Python, and explain what they do. The functions here handle common cases only, and call those of
 * the package for all others. So errors, promotion and shapes are decided there. The module does not
 * link with libduet: the package passes the addresses of the functions of the library that it has
 * loaded (`start` and `register`). */
#ifndef FAST_H
#define FAST_H

#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <structmember.h>

#include "duet/duet.h"

enum { TYPES = 32, DERIVED = 1 }; /* DERIVED: see _graph.py */

/* The parameters of functions of the library that build formulas, by the letters of _table.py. CONCAT
 * has any number of operands. GRADIENT is the operator of _gradient.py: its operands are y and x, or
 * y, x and g. */
#define WITH_SIGNATURES(X)                                                                                   \
    X(E, "e")                                                                                                \
    X(EE, "ee")                                                                                              \
    X(EEE, "eee")                                                                                            \
    X(ED, "ed")                                                                                              \
    X(EED, "eed")                                                                                            \
    X(EEED, "eeed")                                                                                          \
    X(EI, "ei")                                                                                              \
    X(EII, "eii")                                                                                            \
    X(EEI, "eei")                                                                                            \
    X(EEEI, "eeei")                                                                                          \
    X(EL, "el")                                                                                              \
    X(ET, "et")                                                                                              \
    X(EP, "ep")                                                                                              \
    X(EEP, "eep")                                                                                            \
    X(EIP, "eip")                                                                                            \
    X(EES, "ees")                                                                                            \
    X(TL, "tl")                                                                                              \
    X(CONCAT, "concat")                                                                                      \
    X(GRADIENT, "gradient")
#define SIGNATURE(name, letters) name,
enum signature { WITH_SIGNATURES(SIGNATURE) SIGNATURES };

typedef struct function {
    uintptr_t address;
    enum signature signature;
    int is_view; /* its result is a view of its operand: nothing is saved by storing it */
} function;

typedef struct matrix {
    PyObject ob_base;
    duet_matrix *pointer;
    PyObject *keep, *pinned, *weak;
    unsigned long statement; /* the next member is valid in this statement only: */
    struct node *variable;   /* the node with respect to which a gradient is taken */
} matrix;

typedef struct node {
    PyObject ob_base;
    PyObject *op, *args, *attrs, *shape, *dtype, *device, *matrix;
    Py_ssize_t weight;
    int kept;
    int code;                 /* of the element type, or -1 */
    const function *function; /* NULL if `op` is something else */
    unsigned long statement;  /* the next members are valid in this statement only: */
    Py_ssize_t uses;          /* how often its formulas name the node */
    duet_expr formula;
} node;

typedef struct array {
    PyObject ob_base;
    PyObject *node, *base, *weak;
} array;

/* A known result: of one or two operands with these shapes, which are compared by address. */
typedef struct result {
    PyObject *x, *y, *shape; /* y: NULL if there is one operand */
    int x_code, y_code, code;
} result;

/* An operator of arrays, with what was learned from the package. If it works element by element, the
 * tables have the element type of the result for that of the operands, or -1; the result has the shape
 * of the array, or of both if they have the same. Other results are in `known`. */
enum number { FLOAT, INTEGER, NUMBERS };
typedef struct operator_ {
    PyObject ob_base;
    PyObject *op, *general, *reflected;
    const function *function;
    int is_elementwise;
    signed char of_one[TYPES], of_two[TYPES], left[NUMBERS][TYPES], right[NUMBERS][TYPES];
    result known[4];
    unsigned next;
} operator_;

/* Functions of the library, and objects of the package. */
extern struct library {
    duet_expr (*of_matrix)(const duet_matrix *);
    duet_expr (*of_number)(double);
    duet_expr (*of_integer)(int64_t);
    duet_expr (*grad)(duet_expr, const duet_matrix *);
    duet_expr (*vjp)(duet_expr, const duet_matrix *, duet_expr);
    duet_matrix *(*eval)(duet_expr);
    duet_matrix *(*new_shape)(duet_dtype, int, const int64_t *);
    duet_status (*set_all)(const duet_assignment *, int);
    duet_status (*drop)(duet_expr);
    duet_scope (*scope_open)(duet_place);
    void (*scope_close)(duet_scope *);
    void (*release)(duet_matrix **);
    duet_group *(*group_of)(const duet_matrix *);
} library;
extern PyTypeObject *matrix_type, *node_type, *array_base, *array_type, *operator_type;
extern PyType_Spec matrix_spec, node_spec, array_spec, operator_spec;
extern PyObject *dtypes[TYPES], *auto_device, *empty, *functions, *address_name;
extern unsigned integers; /* a bit for each integer type */
extern PyObject *known, *make_slowly, *value_slowly, *evaluate_slowly, *result_of, *make_error;
extern long most;
extern _Thread_local PyObject *here, *recorded; /* NULL: auto, None */

static inline PyObject *none_if_null(PyObject *x) { return x ? x : Py_None; }
static inline PyObject *device_here(void) { return here ? here : auto_device; }
static inline bool is_node(PyObject *x) { return Py_TYPE(x) == node_type; }

/* Sets a pointer to a new reference, or to NULL, and releases the old one last. */
static inline void set(PyObject **p, PyObject *x)
{
    PyObject *old = *p;
    Py_XINCREF(x);
    *p = x;
    Py_XDECREF(old);
}

void free_object(PyObject *self);

/* Owns the pointer, also on failure. */
PyObject *new_matrix(duet_matrix *pointer, PyObject *keep);

/* A node without a matrix. Takes the reference to args, which may be NULL after an error. */
node *new_node(PyObject *op, PyObject *args, PyObject *attrs, PyObject *shape, int code);

/* The number of an element type, or -1. */
int code_of(PyObject *dtype);

/* The function of the library that an operator calls, or NULL. */
const function *find_function(PyObject *op);

/* The signature with these letters of _table.py, or SIGNATURES. */
enum signature signature_of(const char *letters);

/* Functions of the module: see _graph.py. */
PyObject *value(PyObject *module, PyObject *x);
PyObject *evaluate(PyObject *module, PyObject *list);
PyObject *make(PyObject *module, PyObject *arguments);

/* An operator of one array, and one of two operands. */
PyObject *apply_one(PyObject *self, PyObject *x);
PyObject *apply_two(operator_ *o, PyObject *x, PyObject *y);

/* bind(name, operator): arrays use this Operator for the operator of Python with this name, which is
 * given without underscores */
PyObject *bind_operator(PyObject *module, PyObject *args);

#endif
