/* module.c - the module, its functions and its state. */
#include "fast.h"

struct library library;
PyTypeObject *matrix_type, *node_type, *array_base, *array_type, *operator_type;
PyObject *dtypes[TYPES], *auto_device, *empty, *functions;
unsigned integers; /* a bit for each integer type */
PyObject *known, *make_slowly, *value_slowly, *result_of, *make_error;
long most;
_Thread_local PyObject *here, *recorded; /* NULL: auto, None */

/* ---- the state of a thread ---- */

static PyObject *get_state(PyObject *self, void *which)
{
    (void)self;
    PyObject *x = which ? none_if_null(recorded) : device_here();
    Py_INCREF(x);
    return x;
}

static int set_state(PyObject *self, PyObject *x, void *which)
{
    (void)self;
    set(which ? &recorded : &here, none_if_null(x));
    return 0;
}

static PyGetSetDef state_properties[] = {
    { "device", get_state, set_state, NULL, NULL },
    { "recorded", get_state, set_state, NULL, "recorded" },
    { NULL, NULL, NULL, NULL, NULL },
};
static PyType_Slot state_slots[] = { { Py_tp_getset, state_properties }, { 0, NULL } };
static PyType_Spec state_spec = { "_duet_fast.State", sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT, state_slots };

/* ---- the module ---- */

/* start(addresses, auto, types, integers, most, known, make, value, result_of, make_error): what the functions
 * above need of the package. */
static PyObject *start(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned long long of_matrix, of_number, of_integer, eval, release;
    PyObject *types, *objects[6];
    if (!PyArg_ParseTuple(args, "(KKKKK)OO!IlO!OOOO:start", &of_matrix, &of_number, &of_integer, &eval,
                          &release, &objects[0], &PyTuple_Type, &types, &integers, &most, &PyDict_Type,
                          &objects[1], &objects[2], &objects[3], &objects[4], &objects[5]))
        return NULL;
    library.of_matrix = (duet_expr(*)(const duet_matrix *))(uintptr_t)of_matrix;
    library.of_number = (duet_expr(*)(double))(uintptr_t)of_number;
    library.of_integer = (duet_expr(*)(int64_t))(uintptr_t)of_integer;
    library.eval = (duet_matrix * (*)(duet_expr))(uintptr_t)eval;
    library.release = (void (*)(duet_matrix **))(uintptr_t)release;
    for (Py_ssize_t k = 0; k < PyTuple_Size(types) && k < TYPES; k++)
        set(&dtypes[k], PyTuple_GetItem(types, k));
    PyObject **const place[6] = {
        &auto_device, &known, &make_slowly, &value_slowly, &result_of, &make_error
    };
    for (int k = 0; k < 6; k++) set(place[k], objects[k]);
    Py_RETURN_NONE;
}

/* register(op, address, letters): a function of the library, if its parameters are known here */
static PyObject *add_function(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *op;
    unsigned long long address;
    const char *letters;
    if (!PyArg_ParseTuple(args, "OKs:register", &op, &address, &letters)) return NULL;
    const enum signature signature = signature_of(letters);
    if (signature == SIGNATURES) Py_RETURN_NONE;
    function *f = PyMem_Malloc(sizeof *f);
    if (!f) return PyErr_NoMemory();
    *f = (function){ (uintptr_t)address, signature };
    PyObject *capsule = PyCapsule_New(f, NULL, NULL);
    const bool failed = !capsule || PyDict_SetItem(functions, op, capsule) < 0;
    Py_XDECREF(capsule);
    if (failed) return NULL;
    Py_RETURN_NONE;
}

/* use(Array): the class of results */
static PyObject *use(PyObject *module, PyObject *type)
{
    (void)module;
    set((PyObject **)&array_type, type);
    Py_RETURN_NONE;
}

static PyMethodDef functions_of_module[] = {
    { "start", start, METH_VARARGS, NULL },
    { "register", add_function, METH_VARARGS, NULL },
    { "bind", bind, METH_VARARGS, NULL },
    { "use", use, METH_O, NULL },
    { "make", make, METH_VARARGS, NULL },
    { "value", value, METH_O, NULL },
    { NULL, NULL, 0, NULL },
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_duet_fast",
    "Compiled parts of the package duet.",
    -1,
    functions_of_module,
    NULL,
    NULL,
    NULL,
    NULL,
};

static PyTypeObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
    PyObject *type = PyType_FromSpec(spec);
    if (!type) return NULL;
    Py_INCREF(type); /* for this file */
    if (PyModule_AddObject(module, name, type) < 0) return NULL;
    return (PyTypeObject *)type;
}

PyMODINIT_FUNC PyInit__duet_fast(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    empty = PyTuple_New(0), functions = PyDict_New();
    if (empty && functions && (matrix_type = add_type(module, "Matrix", &matrix_spec)) &&
        (node_type = add_type(module, "Node", &node_spec)) &&
        (array_base = add_type(module, "Array", &array_spec)) &&
        (operator_type = add_type(module, "Operator", &operator_spec)) &&
        add_type(module, "State", &state_spec))
        return module;
    Py_DECREF(module);
    return NULL;
}
