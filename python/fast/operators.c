/* operators.c - new nodes, and the operators of arrays, which remember the results of the package. */
#include "fast.h"

/* ---- new formulas ---- */

static PyObject *new_array(node *n)
{
    array *x = n ? (array *)PyType_GenericAlloc(array_type, 0) : NULL;
    if (!x) {
        Py_XDECREF(n);
        return NULL;
    }
    x->node = (PyObject *)n;
    set(&x->base, Py_None);
    return (PyObject *)x;
}

/* The node of an array, or NULL. */
static node *node_of(PyObject *x)
{
    PyObject *n = Py_TYPE(x) == array_type ? ((array *)x)->node : NULL;
    return n && is_node(n) ? (node *)n : NULL;
}

/* Adds what a new node inherits from an operand: device, weight and `kept`. Returns false if the
 * package must decide. */
typedef struct origin {
    PyObject *device;
    Py_ssize_t weight;
    int kept;
} origin;

static bool add_operand(origin *from, const node *n)
{
    from->weight += n->weight;
    if (n->kept) from->kept = DERIVED;
    if (n->device == auto_device) return true;
    if (from->device && from->device != n->device) return false;
    from->device = n->device;
    return true;
}

static node *complete(node *n, const origin *from, const function *f)
{
    if (!n) return NULL;
    set(&n->device, from->device ? from->device : device_here());
    n->weight = from->weight, n->kept = from->kept, n->function = f;
    return n;
}

/* Part of the key of a result: the shape and type of a node, or the class of a number. */
static PyObject *key_of(PyObject *x)
{
    if (is_node(x)) return PyTuple_Pack(2, ((node *)x)->shape, ((node *)x)->dtype);
    PyObject *type = (PyObject *)Py_TYPE(x);
    Py_INCREF(type);
    return type;
}

/* The shape and type of a result, a new reference. */
static PyObject *find_result(PyObject *op, PyObject *args, PyObject *attrs)
{
    Py_ssize_t count = PyTuple_Size(args);
    PyObject *key = PyTuple_New(2 + count);
    if (!key) return NULL;
    Py_INCREF(op), Py_INCREF(attrs);
    PyTuple_SetItem(key, 0, op), PyTuple_SetItem(key, 1, attrs);
    for (Py_ssize_t k = 0; k < count; k++) {
        PyObject *part = key_of(PyTuple_GetItem(args, k));
        if (!part || PyTuple_SetItem(key, 2 + k, part) < 0) {
            Py_DECREF(key);
            return NULL;
        }
    }
    PyObject *found = PyDict_GetItemWithError(known, key);
    Py_DECREF(key);
    Py_XINCREF(found);
    if (found || PyErr_Occurred()) return found;
    return PyObject_CallFunctionObjArgs(result_of, op, args, attrs, NULL);
}

PyObject *make(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *op, *args, *attrs = empty, *meta = Py_None;
    if (!PyArg_ParseTuple(arguments, "OO!|O!O:make", &op, &PyTuple_Type, &args, &PyTuple_Type, &attrs, &meta))
        return NULL;
    origin from = { .weight = 1 };
    bool quick = true, has_integer = false, is_integer = false;
    for (Py_ssize_t k = 0; k < PyTuple_Size(args) && quick; k++) {
        PyObject *x = PyTuple_GetItem(args, k);
        if (is_node(x)) {
            quick = add_operand(&from, (node *)x) && ((node *)x)->code >= 0;
            is_integer |= quick && integers >> ((node *)x)->code & 1;
        } else has_integer |= PyLong_CheckExact(x);
    }
    if (!quick || from.weight > most || (has_integer && is_integer))
        return PyObject_CallObject(make_slowly, arguments);
    if (meta == Py_None) meta = find_result(op, args, attrs);
    else Py_INCREF(meta);
    if (!meta) return NULL;
    int code = code_of(PyTuple_GetItem(meta, 1));
    Py_INCREF(args);
    node *n = complete(new_node(op, args, attrs, PyTuple_GetItem(meta, 0), code), &from, find_function(op));
    Py_DECREF(meta);
    return (PyObject *)n;
}

/* ---- operators ---- */

static bool same_shape(const node *a, const node *b)
{
    return a->shape == b->shape || PyObject_RichCompareBool(a->shape, b->shape, Py_EQ) == 1;
}

static int kind_of(PyObject *x)
{
    return PyFloat_CheckExact(x) ? FLOAT : PyLong_CheckExact(x) ? INTEGER : -1;
}

static const result *find_known(const operator_ *o, const node *a, const node *b)
{
    for (int k = 0; k < 4; k++) {
        const result *r = &o->known[k];
        const bool is_x = r->x == a->shape && r->x_code == a->code;
        if (is_x && (b ? r->y == b->shape && r->y_code == b->code : !r->y)) return r;
    }
    return NULL;
}

static void add_known(operator_ *o, const node *made, const node *a, const node *b)
{
    result *r = &o->known[o->next++ % 4];
    set(&r->x, a->shape), set(&r->y, b ? b->shape : NULL), set(&r->shape, made->shape);
    r->x_code = a->code, r->y_code = b ? b->code : -1, r->code = made->code;
}

/* The node of a result if the operator was applied to exactly these operands, else NULL. */
static node *plain_result(const operator_ *o, PyObject *made, PyObject *x, PyObject *y)
{
    node *n = made ? node_of(made) : NULL;
    if (!n || n->op != o->op || n->code < 0 || PyTuple_Size(n->attrs)) return NULL;
    if (PyTuple_Size(n->args) != (y ? 2 : 1) || PyTuple_GetItem(n->args, 0) != x) return NULL;
    return !y || PyTuple_GetItem(n->args, 1) == y ? n : NULL;
}

static void learn(operator_ *o, const node *made, node *a, node *b, PyObject *x, PyObject *y)
{
    if (a && b) {
        const bool is_same = o->is_elementwise && a->code == b->code && same_shape(a, b);
        if (is_same) o->of_two[a->code] = (signed char)made->code;
        else add_known(o, made, a, b);
        return;
    }
    const node *n = a ? a : b;
    const int kind = kind_of(a ? y : x);
    /* The range of an integer depends on an integer type, so that each number is checked. */
    if (!o->is_elementwise || kind < 0 || (kind == INTEGER && integers >> n->code & 1)) return;
    (a ? o->right : o->left)[kind][n->code] = (signed char)made->code;
}

static PyObject *apply_generally(operator_ *o, PyObject *x, PyObject *y)
{
    if (!o->reflected || PyObject_TypeCheck(x, array_base))
        return PyObject_CallFunctionObjArgs(o->general, x, y, NULL);
    return PyObject_CallFunctionObjArgs(o->reflected, y, x, NULL);
}

/* The type of the result for these operands, of which one is an array, and its shape; or -1: not yet
 * learned */
static int find_two(const operator_ *o, const node *a, const node *b, PyObject *x, PyObject *y,
                    PyObject **shape)
{
    *shape = a ? a->shape : b->shape;
    if (!a || !b) {
        const int kind = kind_of(a ? y : x);
        return kind < 0 ? -1 : (a ? o->right : o->left)[kind][(a ? a : b)->code];
    }
    if (a->code == b->code && o->of_two[a->code] >= 0 && same_shape(a, b)) return o->of_two[a->code];
    const result *r = find_known(o, a, b);
    if (r) *shape = r->shape;
    return r ? r->code : -1;
}

PyObject *apply_two(operator_ *o, PyObject *x, PyObject *y)
{
    node *a = node_of(x), *b = node_of(y);
    const bool is_typed = (a || b) && (!a || a->code >= 0) && (!b || b->code >= 0);
    PyObject *shape, *left = a ? (PyObject *)a : x, *right = b ? (PyObject *)b : y;
    const int code = is_typed ? find_two(o, a, b, x, y, &shape) : -1;
    origin from = { .weight = 1 };
    if (code >= 0 && (!a || add_operand(&from, a)) && (!b || add_operand(&from, b)) && from.weight <= most) {
        Py_INCREF(left), Py_INCREF(right), Py_INCREF(shape); /* a collection may run Python */
        node *n = new_node(o->op, PyTuple_Pack(2, left, right), empty, shape, code);
        n = complete(n, &from, o->function);
        Py_DECREF(left), Py_DECREF(right), Py_DECREF(shape);
        return new_array(n);
    }
    PyObject *made = apply_generally(o, x, y);
    const node *n = is_typed ? plain_result(o, made, left, right) : NULL;
    if (n) learn(o, n, a, b, x, y);
    return made;
}

/* Operator.one(x): a function of one array */
PyObject *apply_one(PyObject *self, PyObject *x)
{
    operator_ *o = (operator_ *)self;
    node *a = node_of(x);
    const bool is_typed = a && a->code >= 0;
    const result *r = is_typed && !o->is_elementwise ? find_known(o, a, NULL) : NULL;
    const int code = !is_typed ? -1 : o->is_elementwise ? o->of_one[a->code] : r ? r->code : -1;
    if (code >= 0 && a->weight < most) {
        origin from = { .weight = 1 };
        add_operand(&from, a);
        PyObject *shape = r ? r->shape : a->shape;
        Py_INCREF(a), Py_INCREF(shape);
        node *n = new_node(o->op, PyTuple_Pack(1, a), empty, shape, code);
        n = complete(n, &from, o->function);
        Py_DECREF(a), Py_DECREF(shape);
        return new_array(n);
    }
    PyObject *made = PyObject_CallFunctionObjArgs(o->general, x, NULL);
    const node *n = is_typed ? plain_result(o, made, (PyObject *)a, NULL) : NULL;
    if (n && o->is_elementwise) o->of_one[a->code] = (signed char)n->code;
    else if (n) add_known(o, n, a, NULL);
    return made;
}

/* Operator.two(x, y): a function of two operands, of which one is an array */
static PyObject *apply_pair(PyObject *self, PyObject *args)
{
    PyObject *x, *y;
    return PyArg_UnpackTuple(args, "two", 2, 2, &x, &y) ? apply_two((operator_ *)self, x, y) : NULL;
}

static PyObject *operator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *op, *general, *reflected = NULL;
    int is_elementwise;
    if (!PyArg_ParseTuple(args, "OOp|O:Operator", &op, &general, &is_elementwise, &reflected)) return NULL;
    operator_ *o = (operator_ *)PyType_GenericAlloc(type, 0);
    if (!o) return NULL;
    set(&o->op, op), set(&o->general, general);
    o->is_elementwise = is_elementwise;
    o->function = find_function(op);
    set(&o->reflected, reflected);
    for (int k = 0; k < TYPES; k++) {
        o->of_one[k] = o->of_two[k] = -1;
        for (int i = 0; i < NUMBERS; i++) o->left[i][k] = o->right[i][k] = -1;
    }
    return (PyObject *)o;
}

static int operator_traverse(PyObject *self, visitproc visit, void *arg)
{
    operator_ *o = (operator_ *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(o->op);
    Py_VISIT(o->general);
    Py_VISIT(o->reflected);
    return 0;
}

static int operator_clear(PyObject *self)
{
    operator_ *o = (operator_ *)self;
    Py_CLEAR(o->op);
    Py_CLEAR(o->general);
    Py_CLEAR(o->reflected);
    return 0;
}

static void operator_free(PyObject *self)
{
    operator_ *o = (operator_ *)self;
    PyObject_GC_UnTrack(self);
    operator_clear(self);
    for (int k = 0; k < 4; k++) {
        Py_CLEAR(o->known[k].x);
        Py_CLEAR(o->known[k].y);
        Py_CLEAR(o->known[k].shape);
    }
    free_object(self);
}

static PyMethodDef operator_methods[] = {
    { "one", apply_one, METH_O, NULL },
    { "two", apply_pair, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};
static PyType_Slot operator_slots[] = {
    { Py_tp_doc, "Operator(op, general, is_elementwise, reflected): an operator of arrays. `general` handles "
                 "all operands." },
    { Py_tp_new, operator_new },
    { Py_tp_dealloc, operator_free },
    { Py_tp_traverse, operator_traverse },
    { Py_tp_clear, operator_clear },
    { Py_tp_methods, operator_methods },
    { 0, NULL },
};
PyType_Spec operator_spec = { "_duet_fast.Operator", sizeof(operator_), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, operator_slots };
