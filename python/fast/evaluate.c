/* evaluate.c - the evaluation of small formulas. */
#include "fast.h"

static const struct {
    const char *letters;
    int operands, attributes;
} signatures[SIGNATURES] = {
    [E] = { "e", 1, 0 },   [EE] = { "ee", 2, 0 },   [EEE] = { "eee", 3, 0 },
    [EI] = { "ei", 1, 1 }, [EEI] = { "eei", 2, 1 }, [ET] = { "et", 1, 1 },
};

enum signature signature_of(const char *letters)
{
    enum signature s = 0;
    while (s < SIGNATURES && strcmp(signatures[s].letters, letters)) s++;
    return s;
}

/* The value of a Python integer, if int64_t has it. */
static bool read_integer(PyObject *x, int64_t *value)
{
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(x, &overflow);
    return !overflow;
}

/* Whether a node can be computed here: it consists of known functions, no more than *left, nothing else refers to
 * the formulas in it, and no other library writes its operands. */
static bool is_plain(const node *n, int *left)
{
    int64_t value;
    if (!n->function || n->matrix != Py_None || --*left < 0) return false;
    int operands = signatures[n->function->signature].operands;
    int attributes = signatures[n->function->signature].attributes;
    if (PyTuple_Size(n->args) != operands || PyTuple_Size(n->attrs) != attributes) return false;
    for (int k = 0; k < attributes; k++) {
        PyObject *x = PyTuple_GetItem(n->attrs, k);
        if (!PyLong_CheckExact(x) || !read_integer(x, &value) || value != (int)value) return false;
    }
    for (int k = 0; k < operands; k++) {
        PyObject *x = PyTuple_GetItem(n->args, k);
        if (is_node(x)) {
            const matrix *m = (const matrix *)((node *)x)->matrix;
            if ((PyObject *)m == Py_None) {
                if (Py_REFCNT(x) > 1 || !is_plain((node *)x, left)) return false;
            } else if (m->pinned == Py_True && m->keep != Py_None) return false;
        } else if (!PyFloat_CheckExact(x) && !(PyLong_Check(x) && read_integer(x, &value))) return false;
    }
    return true;
}

static duet_expr call(const function *f, const duet_expr x[], int attribute)
{
    switch (f->signature) {
    case E: return ((duet_expr(*)(duet_expr))f->address)(x[0]);
    case EE: return ((duet_expr(*)(duet_expr, duet_expr))f->address)(x[0], x[1]);
    case EEE: return ((duet_expr(*)(duet_expr, duet_expr, duet_expr))f->address)(x[0], x[1], x[2]);
    case EI: return ((duet_expr(*)(duet_expr, int))f->address)(x[0], attribute);
    case EEI: return ((duet_expr(*)(duet_expr, duet_expr, int))f->address)(x[0], x[1], attribute);
    case ET: return ((duet_expr(*)(duet_expr, duet_dtype))f->address)(x[0], (duet_dtype)attribute);
    default: return (duet_expr){ 0 };
    }
}

/* The C formula of a plain node. `used` gets the operands, which must exist until the formula is evaluated:
 * another thread may evaluate the node meanwhile, and clears its operands then. */
static duet_expr build(const node *n, PyObject *used[], int *count)
{
    duet_expr e[3];
    int operands = signatures[n->function->signature].operands;
    int64_t value = 0;
    Py_INCREF(n->args);
    used[(*count)++] = n->args;
    for (int k = 0; k < operands; k++) {
        PyObject *x = PyTuple_GetItem(n->args, k);
        if (is_node(x)) {
            const matrix *m = (const matrix *)((node *)x)->matrix;
            e[k] = (PyObject *)m == Py_None ? build((node *)x, used, count) : library.of_matrix(m->pointer);
        } else if (PyFloat_CheckExact(x)) {
            e[k] = library.of_number(PyFloat_AsDouble(x));
        } else {
            read_integer(x, &value);
            e[k] = library.of_integer(value);
        }
    }
    if (signatures[n->function->signature].attributes) read_integer(PyTuple_GetItem(n->attrs, 0), &value);
    return call(n->function, e, (int)value);
}

/* Evaluates a plain node. Returns whether that succeeded. */
static bool compute(node *n)
{
    PyObject *used[SMALL];
    int count = 0;
    duet_expr e = build(n, used, &count);
    PyObject *made = NULL;
    PyThreadState *thread = PyEval_SaveThread();
    duet_matrix *pointer = library.eval(e);
    PyEval_RestoreThread(thread);
    if (pointer) made = new_matrix(pointer, Py_None);
    else {
        PyObject *error = PyObject_CallObject(make_error, NULL);
        if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
        Py_XDECREF(error);
    }
    if (made) {
        if (n->matrix == Py_None) set(&n->matrix, made);
        set(&n->args, empty), set(&n->attrs, empty), set(&n->op, Py_None);
        n->weight = 0;
        Py_DECREF(made);
    }
    for (int k = 0; k < count; k++) Py_DECREF(used[k]);
    return made;
}

PyObject *value(PyObject *module, PyObject *x)
{
    (void)module;
    node *n = (node *)x;
    if (!is_node(x)) {
        PyErr_SetString(PyExc_TypeError, "value needs a Node");
        return NULL;
    }
    if (n->matrix == Py_None) {
        int left = SMALL;
        bool runs_here = n->device == auto_device || n->device == device_here();
        bool quick = runs_here && !n->kept && none_if_null(recorded) == Py_None;
        if (!quick || !is_plain(n, &left)) return PyObject_CallFunctionObjArgs(value_slowly, x, NULL);
        if (!compute(n)) return NULL;
    }
    Py_INCREF(n->matrix);
    return n->matrix;
}
