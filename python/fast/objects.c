/* objects.c - the classes of matrices and nodes. */
#include "fast.h"

void free_object(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

/* ---- matrices ---- */

PyObject *new_matrix(duet_matrix *pointer, PyObject *keep)
{
    matrix *m = (matrix *)PyType_GenericAlloc(matrix_type, 0);
    if (!m) {
        library.release(&pointer);
        return NULL;
    }
    m->pointer = pointer;
    set(&m->keep, keep), set(&m->pinned, Py_False);
    return (PyObject *)m;
}

static PyObject *matrix_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)keywords;
    PyObject *address, *keep = Py_None;
    if (!PyArg_ParseTuple(args, "O|O:Matrix", &address, &keep)) return NULL;
    void *pointer = PyLong_AsVoidPtr(address);
    return PyErr_Occurred() ? NULL : new_matrix(pointer, keep);
}

static PyObject *matrix_pointer(PyObject *self, void *data)
{
    (void)data;
    return PyLong_FromVoidPtr(((matrix *)self)->pointer);
}

static int matrix_traverse(PyObject *self, visitproc visit, void *arg)
{
    matrix *m = (matrix *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(m->keep);
    return 0;
}

static int matrix_clear(PyObject *self)
{
    matrix *m = (matrix *)self;
    Py_CLEAR(m->pinned);
    library.release(&m->pointer); /* before the memory of its owner */
    Py_CLEAR(m->keep);
    return 0;
}

static void matrix_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((matrix *)self)->weak) PyObject_ClearWeakRefs(self);
    matrix_clear(self);
    free_object(self);
}

static PyMemberDef matrix_members[] = {
    { "keep", T_OBJECT, offsetof(matrix, keep), 0, NULL },
    { "pinned", T_OBJECT, offsetof(matrix, pinned), 0, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(matrix, weak), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyGetSetDef matrix_properties[] = {
    { "pointer", matrix_pointer, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot matrix_slots[] = {
    { Py_tp_doc, "Owns a duet_matrix: see duet/_graph.py." },
    { Py_tp_new, matrix_new },
    { Py_tp_dealloc, matrix_free },
    { Py_tp_traverse, matrix_traverse },
    { Py_tp_clear, matrix_clear },
    { Py_tp_members, matrix_members },
    { Py_tp_getset, matrix_properties },
    { 0, NULL },
};
PyType_Spec matrix_spec = { "_duet_fast.Matrix", sizeof(matrix), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                            matrix_slots };

/* ---- nodes ---- */

int code_of(PyObject *dtype)
{
    for (int k = 0; k < TYPES && dtypes[k]; k++)
        if (dtypes[k] == dtype) return k;
    return -1;
}

const function *find_function(PyObject *op)
{
    PyObject *found = op == Py_None ? NULL : PyDict_GetItem(functions, op);
    return found ? PyCapsule_GetPointer(found, NULL) : NULL;
}

node *new_node(PyObject *op, PyObject *args, PyObject *attrs, PyObject *shape, int code)
{
    node *n = args ? (node *)PyType_GenericAlloc(node_type, 0) : NULL;
    if (!n) {
        Py_XDECREF(args);
        return NULL;
    }
    n->args = args, n->code = code;
    set(&n->op, op), set(&n->attrs, attrs), set(&n->shape, shape), set(&n->matrix, Py_None);
    if (code >= 0) set(&n->dtype, dtypes[code]);
    return n;
}

static PyObject *node_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)type, (void)keywords;
    PyObject *op, *operands, *attrs, *shape, *dtype, *device;
    Py_ssize_t weight;
    if (!PyArg_ParseTuple(args, "OO!O!OOOn:Node", &op, &PyTuple_Type, &operands, &PyTuple_Type, &attrs,
                          &shape, &dtype, &device, &weight))
        return NULL;
    Py_INCREF(operands);
    node *n = new_node(op, operands, attrs, shape, code_of(dtype));
    if (!n) return NULL;
    set(&n->dtype, dtype), set(&n->device, device);
    n->weight = weight, n->function = find_function(op);
    return (PyObject *)n;
}

static PyObject *node_ndim(PyObject *self, void *data)
{
    (void)data;
    return PyLong_FromSsize_t(PyTuple_Size(((node *)self)->shape));
}

static int node_traverse(PyObject *self, visitproc visit, void *arg)
{
    node *n = (node *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(n->op);
    Py_VISIT(n->args);
    Py_VISIT(n->attrs);
    Py_VISIT(n->matrix);
    return 0;
}

static int node_clear(PyObject *self)
{
    node *n = (node *)self;
    Py_CLEAR(n->op);
    Py_CLEAR(n->args);
    Py_CLEAR(n->attrs);
    Py_CLEAR(n->matrix);
    return 0;
}

/* A chain of nodes is freed without deep recursion, because tuples are between them. */
static void node_free(PyObject *self)
{
    node *n = (node *)self;
    PyObject_GC_UnTrack(self);
    node_clear(self);
    Py_CLEAR(n->shape);
    Py_CLEAR(n->dtype);
    Py_CLEAR(n->device);
    free_object(self);
}

static PyMemberDef node_members[] = {
    { "op", T_OBJECT, offsetof(node, op), 0, NULL },
    { "args", T_OBJECT, offsetof(node, args), 0, NULL },
    { "attrs", T_OBJECT, offsetof(node, attrs), 0, NULL },
    { "shape", T_OBJECT, offsetof(node, shape), READONLY, NULL },
    { "dtype", T_OBJECT, offsetof(node, dtype), READONLY, NULL },
    { "device", T_OBJECT, offsetof(node, device), 0, NULL },
    { "matrix", T_OBJECT, offsetof(node, matrix), 0, NULL },
    { "weight", T_PYSSIZET, offsetof(node, weight), 0, NULL },
    { "kept", T_INT, offsetof(node, kept), 0, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyGetSetDef node_properties[] = {
    { "ndim", node_ndim, NULL, NULL, NULL },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot node_slots[] = {
    { Py_tp_doc, "A value: see duet/_graph.py." },
    { Py_tp_new, node_new },
    { Py_tp_dealloc, node_free },
    { Py_tp_traverse, node_traverse },
    { Py_tp_clear, node_clear },
    { Py_tp_members, node_members },
    { Py_tp_getset, node_properties },
    { 0, NULL },
};
PyType_Spec node_spec = { "_duet_fast.Node", sizeof(node), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                          node_slots };
