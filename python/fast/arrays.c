/* arrays.c - the base class of arrays. duet/_array.py derives the class with all other methods. */
#include "fast.h"

/* The operators by the names of Python without underscores, with their slots. */
#define WITH_TWO(X)                                                                                          \
    X(add, add)                                                                                              \
    X(sub, subtract)                                                                                         \
    X(mul, multiply)                                                                                         \
    X(truediv, true_divide)                                                                                  \
    X(mod, remainder)                                                                                        \
    X(and, and)                                                                                              \
    X(or, or)                                                                                                \
    X(xor, xor)                                                                                              \
    X(lshift, lshift)                                                                                        \
    X(rshift, rshift)                                                                                        \
    X(matmul, matrix_multiply)
#define WITH_ONE(X)        X(neg, negative) X(abs, absolute) X(invert, invert)
#define NUMBER(name, slot) SLOT_##name,
#define NAME(name, slot)   #name,
enum slot { WITH_TWO(NUMBER) WITH_ONE(NUMBER) SLOT_pow, SLOT_lt, SLOTS = SLOT_lt + 6 };
static const char *const slot_names[SLOTS] = {
    WITH_TWO(NAME) WITH_ONE(NAME) "pow", "lt", "le", "eq", "ne", "gt", "ge", /* as Py_LT ... Py_GE */
};
static operator_ *bound[SLOTS];

static PyObject *apply_slot(enum slot s, PyObject *x, PyObject *y)
{
    if (!bound[s]) Py_RETURN_NOTIMPLEMENTED;
    return y ? apply_two(bound[s], x, y) : apply_one((PyObject *)bound[s], x);
}

#define TWO(name, slot)                                                                                      \
    static PyObject *array_##name(PyObject *x, PyObject *y) { return apply_slot(SLOT_##name, x, y); }
#define ONE(name, slot)                                                                                      \
    static PyObject *array_##name(PyObject *x) { return apply_slot(SLOT_##name, x, NULL); }
WITH_TWO(TWO)
WITH_ONE(ONE)

static PyObject *array_pow(PyObject *x, PyObject *y, PyObject *modulus)
{
    if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
    return apply_slot(SLOT_pow, x, y);
}

static PyObject *array_compare(PyObject *x, PyObject *y, int how)
{
    return apply_slot((enum slot)(SLOT_lt + how), x, y);
}

static PyObject *array_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    (void)keywords;
    PyObject *n;
    if (PyTuple_Size(args) != 1 || !is_node(n = PyTuple_GetItem(args, 0))) {
        PyErr_SetString(PyExc_TypeError, "use duet.asarray to make an array");
        return NULL;
    }
    array *x = (array *)PyType_GenericAlloc(type, 0);
    if (x) set(&x->node, n), set(&x->base, Py_None);
    return (PyObject *)x;
}

static PyObject *array_evaluate(PyObject *self, PyObject *none)
{
    (void)none;
    PyObject *n = none_if_null(((array *)self)->node);
    Py_INCREF(n);
    PyObject *m = value(NULL, n);
    Py_DECREF(n);
    if (!m) return NULL;
    Py_DECREF(m);
    Py_INCREF(self);
    return self;
}

static int array_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((array *)self)->node);
    Py_VISIT(((array *)self)->base);
    return 0;
}

static int array_clear(PyObject *self)
{
    Py_CLEAR(((array *)self)->node);
    Py_CLEAR(((array *)self)->base);
    return 0;
}

static void array_free(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    if (((array *)self)->weak) PyObject_ClearWeakRefs(self);
    array_clear(self);
    free_object(self);
}

static PyMemberDef array_members[] = {
    { "_node", T_OBJECT_EX, offsetof(array, node), 0, NULL },
    { "_base", T_OBJECT, offsetof(array, base), 0, NULL },
    { "__weaklistoffset__", T_PYSSIZET, offsetof(array, weak), READONLY, NULL },
    { NULL, 0, 0, 0, NULL },
};
static PyMethodDef array_methods[] = {
    { "evaluate", array_evaluate, METH_NOARGS,
      "evaluate($self, /)\n--\n\nComputes the elements now, and returns the array." },
    { NULL, NULL, 0, NULL },
};
#define SLOT(name, slot) { Py_nb_##slot, array_##name },
static PyType_Slot array_slots[] = {
    { Py_tp_doc, "What all arrays have: see duet/_array.py." },
    { Py_tp_new, array_new },
    { Py_tp_dealloc, array_free },
    { Py_tp_traverse, array_traverse },
    { Py_tp_clear, array_clear },
    { Py_tp_members, array_members },
    { Py_tp_methods, array_methods },
    { Py_tp_richcompare, array_compare },
    { Py_tp_hash, PyObject_HashNotImplemented },
    WITH_TWO(SLOT) WITH_ONE(SLOT){ Py_nb_power, array_pow },
    { 0, NULL },
};
PyType_Spec array_spec = { "_duet_fast.Array", sizeof(array), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, array_slots };

PyObject *bind_operator(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *o;
    if (!PyArg_ParseTuple(args, "sO!:bind", &name, operator_type, &o)) return NULL;
    for (int s = 0; s < SLOTS; s++)
        if (!strcmp(slot_names[s], name)) set((PyObject **)&bound[s], o);
    Py_RETURN_NONE;
}
