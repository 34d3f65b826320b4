/* evaluate.c - the evaluation of formulas, as `evaluate` and `value` in _graph.py do it. No code in
 * Python runs between the first look at the nodes and the reading of their formulas, so the nodes need no
 * references until then. Up to version 3.11, a garbage collection may run such code where an object is
 * made. */
#include "fast.h"

/* ---- functions of the library ---- */

/* Letters as in _table.py: formulas first, and then the attributes. */
#define LETTERS(name, letters) letters,
static const char *const letters_of[SIGNATURES] = { WITH_SIGNATURES(LETTERS) };

enum signature signature_of(const char *letters)
{
    enum signature s = 0;
    while (s < SIGNATURES && strcmp(letters_of[s], letters)) s++;
    return s;
}

enum { OPERANDS = 64 }; /* _array.py joins no more at once */

/* The attributes of a node, by C type. Those of one type keep their order. */
typedef struct attributes {
    int i[2];
    int64_t l;
    double d;
    const void *p;
} attributes;

#define CALL(types, ...) (((duet_expr(*) types)f->address)(__VA_ARGS__))
static duet_expr call(const function *f, const duet_expr x[], int count, const attributes *a)
{
    switch (f->signature) {
    case E: return CALL((duet_expr), x[0]);
    case EE: return CALL((duet_expr, duet_expr), x[0], x[1]);
    case EEE: return CALL((duet_expr, duet_expr, duet_expr), x[0], x[1], x[2]);
    case ED: return CALL((duet_expr, double), x[0], a->d);
    case EED: return CALL((duet_expr, duet_expr, double), x[0], x[1], a->d);
    case EEED: return CALL((duet_expr, duet_expr, duet_expr, double), x[0], x[1], x[2], a->d);
    case EI: return CALL((duet_expr, int), x[0], a->i[0]);
    case EII: return CALL((duet_expr, int, int), x[0], a->i[0], a->i[1]);
    case EEI: return CALL((duet_expr, duet_expr, int), x[0], x[1], a->i[0]);
    case EEEI: return CALL((duet_expr, duet_expr, duet_expr, int), x[0], x[1], x[2], a->i[0]);
    case EL: return CALL((duet_expr, int64_t), x[0], a->l);
    case ET: return CALL((duet_expr, duet_dtype), x[0], (duet_dtype)a->i[0]);
    case EP: return CALL((duet_expr, const void *), x[0], a->p);
    case EEP:
    case EES: return CALL((duet_expr, duet_expr, const void *), x[0], x[1], a->p);
    case TL: return CALL((duet_dtype, int64_t), (duet_dtype)a->i[0], a->l);
    case CONCAT: return CALL((int, int, const duet_expr *), a->i[0], count, x);
    case EIP: return CALL((duet_expr, int, const void *), x[0], a->i[0], a->p);
    default: return (duet_expr){ 0 };
    }
}

/* The number of operands that a node must have. Sets *letters to those of its attributes. */
static int operands_of(const node *n, const char **letters)
{
    *letters = letters_of[n->function->signature];
    if (n->function->signature == CONCAT) {
        const Py_ssize_t count = PyTuple_Size(n->args);
        *letters = "i";
        return count < OPERANDS ? (int)count : OPERANDS;
    }
    const int operands = (int)strspn(*letters, "e");
    *letters += operands;
    return operands;
}

/* The value of a Python integer, if int64_t has it. */
static bool read_integer(PyObject *x, int64_t *value)
{
    int overflow;
    *value = PyLong_AsLongLongAndOverflow(x, &overflow);
    return !overflow;
}

static bool read_int(PyObject *x, int *value)
{
    int64_t wide;
    if (!PyLong_Check(x) || !read_integer(x, &wide) || wide != (int)wide) return false;
    *value = (int)wide;
    return true;
}

static bool read_double(PyObject *x, double *value)
{
    if (!PyFloat_Check(x)) return false;
    *value = PyFloat_AsDouble(x);
    return true;
}

/* The address of a text, or of a struct or an array of ctypes, which the package has stored in it; of
 * None, NULL. */
static bool read_address(PyObject *x, const void **p)
{
    *p = NULL;
    if (x == Py_None) return true;
    if (PyBytes_Check(x)) return (*p = PyBytes_AsString(x));
    PyObject *address = PyObject_GetAttr(x, address_name);
    if (address && PyLong_Check(address)) *p = PyLong_AsVoidPtr(address);
    Py_XDECREF(address);
    PyErr_Clear();
    return *p;
}

static bool read_attributes(const char *letters, PyObject *attrs, attributes *a)
{
    int ints = 0;
    if (PyTuple_Size(attrs) != (Py_ssize_t)strlen(letters)) return false;
    for (int k = 0; letters[k]; k++) {
        PyObject *x = PyTuple_GetItem(attrs, k);
        switch (letters[k]) {
        case 'i':
        case 't':
            if (!read_int(x, &a->i[ints++])) return false;
            break;
        case 'l':
            if (!PyLong_Check(x) || !read_integer(x, &a->l)) return false;
            break;
        case 'd':
            if (!read_double(x, &a->d)) return false;
            break;
        default:
            if (!read_address(x, &a->p)) return false;
        }
    }
    return true;
}

/* ---- the nodes of a statement ---- */

/* The nodes that are not computed, operands first; those whose values are stored; and the formulas. */
enum { NODES = 256, OUTPUTS = 64 };
typedef struct statement {
    unsigned long number;
    int count, outputs;
    bool has_gradients, has_computed; /* computed: an operand that keeps its formula for gradients */
    node *list[NODES], *output[OUTPUTS];
    PyObject *args[NODES];
} statement;

static unsigned long statements;

static bool collect(statement *s, node *n, int depth);

/* Appends an operand. Returns false if the package must evaluate the formula. */
static bool add(statement *s, PyObject *x, int depth)
{
    int64_t value;
    if (!is_node(x)) return PyFloat_CheckExact(x) || (PyLong_Check(x) && read_integer(x, &value));
    node *n = (node *)x;
    if (n->matrix != Py_None) {
        const matrix *m = (const matrix *)n->matrix;
        s->has_computed |= n->kept == DERIVED;
        return m->pinned != Py_True || m->keep == Py_None; /* else others write it */
    }
    if (!collect(s, n, depth + 1)) return false;
    n->uses++;
    return true;
}

static bool append(statement *s, node *n)
{
    if (s->count == NODES) return false;
    s->list[s->count++] = n;
    return true;
}

static bool collect_gradient(statement *s, node *n, int depth)
{
    const int operands = (int)PyTuple_Size(n->args);
    node *y = (node *)PyTuple_GetItem(n->args, 0), *x = (node *)PyTuple_GetItem(n->args, 1);
    if (y->matrix != Py_None || x->matrix == Py_None) return false;
    matrix *m = (matrix *)x->matrix;
    if (m->statement == s->number && m->variable != x) return false;
    m->statement = s->number, m->variable = x;
    s->has_gradients = true;
    return add(s, (PyObject *)y, depth) && add(s, (PyObject *)x, depth) &&
           (operands == 2 || add(s, PyTuple_GetItem(n->args, 2), depth)) && append(s, n);
}

static bool collect(statement *s, node *n, int depth)
{
    attributes a;
    if (n->statement == s->number) return true;
    if (!n->function || depth == NODES) return false;
    n->statement = s->number, n->uses = 0;
    if (n->function->signature == GRADIENT) return collect_gradient(s, n, depth);
    const char *letters;
    const int operands = operands_of(n, &letters);
    if (PyTuple_Size(n->args) != operands || !read_attributes(letters, n->attrs, &a)) return false;
    for (int k = 0; k < operands; k++)
        if (!add(s, PyTuple_GetItem(n->args, k), depth)) return false;
    return append(s, n);
}

/* Does an operand share the matrix of a variable without being that variable? It is a constant in the
 * gradient. */
static bool has_constants(const statement *s)
{
    for (int i = 0; i < s->count; i++)
        for (Py_ssize_t k = 0; k < PyTuple_Size(s->list[i]->args); k++) {
            PyObject *x = PyTuple_GetItem(s->list[i]->args, k);
            if (!is_node(x) || ((node *)x)->matrix == Py_None) continue;
            const matrix *m = (const matrix *)((node *)x)->matrix;
            if (m->statement == s->number && (PyObject *)m->variable != x) return true;
        }
    return false;
}

/* Selects the nodes to store: the roots, and those that something besides the formulas refers to,
 * unless they are views. */
static bool choose_outputs(statement *s, PyObject *const roots[], int count)
{
    for (int i = 0; i < s->count; i++) {
        node *n = s->list[i];
        bool is_output = Py_REFCNT((PyObject *)n) > n->uses && !n->function->is_view;
        for (int k = 0; k < count && !is_output; k++) is_output = roots[k] == (PyObject *)n;
        if (!is_output) continue;
        if (s->outputs == OUTPUTS) return false;
        s->output[s->outputs++] = n;
    }
    return true;
}

/* Is an operand on a group? */
static bool is_on_group(const statement *s)
{
    for (int i = 0; i < s->count; i++)
        for (Py_ssize_t k = 0; k < PyTuple_Size(s->list[i]->args); k++) {
            PyObject *x = PyTuple_GetItem(s->list[i]->args, k);
            if (!is_node(x) || ((node *)x)->matrix == Py_None) continue;
            if (library.group_of(((matrix *)((node *)x)->matrix)->pointer)) return true;
        }
    return false;
}

/* Takes references to all nodes and their operands, because another thread may evaluate them during the
 * statement, and clears their operands then. */
static void hold(statement *s)
{
    for (int i = 0; i < s->count; i++) {
        s->args[i] = s->list[i]->args;
        Py_INCREF(s->args[i]);
        Py_INCREF(s->list[i]);
    }
}

static void release(statement *s)
{
    for (int i = 0; i < s->count; i++) {
        Py_DECREF(s->args[i]);
        Py_DECREF(s->list[i]);
    }
}

static duet_expr formula_of(PyObject *x)
{
    int64_t value;
    if (is_node(x)) {
        const node *n = (const node *)x;
        return n->matrix == Py_None ? n->formula : library.of_matrix(((matrix *)n->matrix)->pointer);
    }
    if (PyFloat_CheckExact(x)) return library.of_number(PyFloat_AsDouble(x));
    read_integer(x, &value);
    return library.of_integer(value);
}

static duet_expr gradient(const node *n)
{
    const duet_expr y = formula_of(PyTuple_GetItem(n->args, 0));
    const duet_matrix *x = ((matrix *)((node *)PyTuple_GetItem(n->args, 1))->matrix)->pointer;
    if (PyTuple_Size(n->args) == 2) return library.grad(y, x);
    return library.vjp(y, x, formula_of(PyTuple_GetItem(n->args, 2)));
}

static void build(statement *s)
{
    for (int i = 0; i < s->count; i++) {
        node *n = s->list[i];
        if (n->function->signature == GRADIENT) {
            n->formula = gradient(n);
            continue;
        }
        const char *letters;
        const int operands = operands_of(n, &letters);
        duet_expr e[OPERANDS];
        attributes a = { .p = NULL };
        read_attributes(letters, n->attrs, &a);
        for (int k = 0; k < operands; k++) e[k] = formula_of(PyTuple_GetItem(n->args, k));
        n->formula = call(n->function, e, operands, &a);
    }
}

/* ---- evaluation ---- */

static PyObject *new_result(const node *n)
{
    int64_t size[DUET_RANK_MAX] = { 0 };
    const int rank = (int)PyTuple_Size(n->shape);
    for (int k = 0; k < rank && k < DUET_RANK_MAX; k++) read_integer(PyTuple_GetItem(n->shape, k), &size[k]);
    duet_matrix *pointer = library.new_shape((duet_dtype)n->code, rank, size);
    return pointer ? new_matrix(pointer, Py_None) : NULL;
}

static void raise_error(void)
{
    PyObject *error = PyErr_Occurred() ? NULL : PyObject_CallObject(make_error, NULL);
    if (error) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
}

/* Computes the outputs. Fills `made` with their matrices. */
static bool run_one(const statement *s, PyObject *made[])
{
    const duet_expr e = s->output[0]->formula; /* another thread may build one of the same node */
    PyThreadState *thread = PyEval_SaveThread();
    duet_matrix *pointer = library.eval(e);
    PyEval_RestoreThread(thread);
    return pointer && (made[0] = new_matrix(pointer, Py_None));
}

static bool run_all(const statement *s, PyObject *made[])
{
    duet_assignment list[OUTPUTS];
    bool done = true;
    for (int k = 0; k < s->outputs; k++) list[k].value = s->output[k]->formula;
    for (int k = 0; k < s->outputs; k++) {
        done = done && (made[k] = new_result(s->output[k]));
        if (done) list[k].to = ((matrix *)made[k])->pointer;
    }
    if (!done) {
        for (int k = 0; k < s->outputs; k++) library.drop(list[k].value);
        return false;
    }
    PyThreadState *thread = PyEval_SaveThread();
    const duet_status status = library.set_all(list, s->outputs);
    PyEval_RestoreThread(thread);
    return status == DUET_OK;
}

/* Gives a node its matrix. It no longer needs its formula, unless gradients do. */
static void finish(node *n, PyObject *made)
{
    if (n->matrix == Py_None) set(&n->matrix, made); /* else another thread was faster */
    n->weight = 0;
    if (n->kept == DERIVED) return;
    set(&n->args, empty), set(&n->attrs, empty), set(&n->op, Py_None);
    n->function = NULL;
}

/* Fills `made` with the matrices of the outputs. */
static bool run_statement(statement *s, PyObject *made[])
{
    build(s);
    const bool done = s->outputs == 1 ? run_one(s, made) : run_all(s, made);
    if (!done) raise_error();
    return done;
}

/* The same on a device that no block of Python has selected. */
static bool run_elsewhere(statement *s, PyObject *device, PyObject *made[])
{
    PyObject *number = PyObject_GetAttrString(device, "place");
    int place = DUET_AUTO;
    if (number) read_int(number, &place);
    Py_XDECREF(number);
    duet_scope scope = library.scope_open((duet_place)place);
    const bool done = number && run_statement(s, made);
    library.scope_close(&scope);
    return done;
}

/* Evaluates nodes in one statement. Returns 1, 0 if the package must do it, or -1 after an error. */
static int run(PyObject *const roots[], int count)
{
    statement s;
    PyObject *made[OUTPUTS] = { NULL };
    s.number = ++statements, s.count = s.outputs = 0;
    s.has_gradients = s.has_computed = false;
    if (none_if_null(recorded) != Py_None) return 0;
    for (int k = 0; k < count; k++) {
        const node *n = (const node *)roots[k];
        if (!is_node(roots[k]) || n->device != ((node *)roots[0])->device) return 0;
        if (n->matrix == Py_None && !collect(&s, (node *)roots[k], 0)) return 0;
    }
    /* The package decides through which computed values a gradient goes. */
    if (s.has_gradients && (s.has_computed || has_constants(&s))) return 0;
    if (!choose_outputs(&s, roots, count)) return 0;
    if (!s.outputs) return 1;
    if (s.outputs > 1 && is_on_group(&s)) return 0; /* the package makes the results on the group */
    hold(&s);
    PyObject *device = ((node *)roots[0])->device;
    const bool is_here = device == auto_device || device == device_here();
    const bool done = is_here ? run_statement(&s, made) : run_elsewhere(&s, device, made);
    for (int k = 0; k < s.outputs; k++) {
        if (done) finish(s.output[k], made[k]);
        Py_XDECREF(made[k]);
    }
    release(&s);
    return done ? 1 : -1;
}

PyObject *value(PyObject *module, PyObject *x)
{
    (void)module;
    if (!is_node(x)) {
        PyErr_SetString(PyExc_TypeError, "value needs a Node");
        return NULL;
    }
    node *n = (node *)x;
    if (n->matrix == Py_None) {
        const int done = run(&x, 1);
        if (done < 0) return NULL;
        if (!done) return PyObject_CallFunctionObjArgs(value_slowly, x, NULL);
    }
    Py_INCREF(n->matrix);
    return n->matrix;
}

PyObject *evaluate(PyObject *module, PyObject *list)
{
    (void)module;
    PyObject *roots[OUTPUTS];
    const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : OUTPUTS + 1;
    for (Py_ssize_t k = 0; k < count && count <= OUTPUTS; k++) roots[k] = PyList_GetItem(list, k);
    const int done = count <= OUTPUTS ? run(roots, (int)count) : 0;
    if (done < 0) return NULL;
    if (!done) return PyObject_CallFunctionObjArgs(evaluate_slowly, list, NULL);
    Py_RETURN_NONE;
}
