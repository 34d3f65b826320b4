/* module.c - the module, its functions and its state. */
#include "fast.h"

struct library library;
PyTypeObject *matrix_type, *node_type, *array_base, *array_type, *operator_type;
PyObject *dtypes[TYPES], *auto_device, *empty, *functions, *address_name;
unsigned integers; /* a bit for each integer type */
PyObject *known, *make_slowly, *value_slowly, *evaluate_slowly, *result_of, *make_error;
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

/* start(addresses, auto, types, integers, most, known, make, value, evaluate, result_of, make_error):
 * sets what the functions of the module use of the package. */
static PyObject *start(PyObject *module, PyObject *args)
{
    (void)module;
    enum { FUNCTIONS = 13, OBJECTS = 7 };
    unsigned long long at[FUNCTIONS];
    PyObject *addresses, *types, *objects[OBJECTS];
    PyObject **const place[OBJECTS] = { &auto_device,     &known,     &make_slowly, &value_slowly,
                                        &evaluate_slowly, &result_of, &make_error };
    if (!PyArg_ParseTuple(args, "O!OO!IlO!OOOOO:start", &PyTuple_Type, &addresses, &objects[0], &PyTuple_Type,
                          &types, &integers, &most, &PyDict_Type, &objects[1], &objects[2], &objects[3],
                          &objects[4], &objects[5], &objects[6]) ||
        PyTuple_Size(addresses) != FUNCTIONS)
        return NULL;
    for (int k = 0; k < FUNCTIONS; k++) at[k] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(addresses, k));
    library.of_matrix = (duet_expr(*)(const duet_matrix *))(uintptr_t)at[0];
    library.of_number = (duet_expr(*)(double))(uintptr_t)at[1];
    library.of_integer = (duet_expr(*)(int64_t))(uintptr_t)at[2];
    library.eval = (duet_matrix * (*)(duet_expr))(uintptr_t)at[3];
    library.new_shape = (duet_matrix * (*)(duet_dtype, int, const int64_t *))(uintptr_t)at[4];
    library.set_all = (duet_status(*)(const duet_assignment *, int))(uintptr_t)at[5];
    library.drop = (duet_status(*)(duet_expr))(uintptr_t)at[6];
    library.grad = (duet_expr(*)(duet_expr, const duet_matrix *))(uintptr_t)at[10];
    library.vjp = (duet_expr(*)(duet_expr, const duet_matrix *, duet_expr))(uintptr_t)at[11];
    library.scope_open = (duet_scope(*)(duet_place))(uintptr_t)at[7];
    library.scope_close = (void (*)(duet_scope *))(uintptr_t)at[8];
    library.release = (void (*)(duet_matrix **))(uintptr_t)at[9];
    library.group_of = (duet_group * (*)(const duet_matrix *))(uintptr_t)at[12];
    for (Py_ssize_t k = 0; k < PyTuple_Size(types) && k < TYPES; k++)
        set(&dtypes[k], PyTuple_GetItem(types, k));
    for (int k = 0; k < OBJECTS; k++) set(place[k], objects[k]);
    Py_RETURN_NONE;
}

/* register(op, address, letters, is_view): adds a library function whose parameters are known here */
static PyObject *add_function(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *op;
    unsigned long long address;
    const char *letters;
    int is_view;
    if (!PyArg_ParseTuple(args, "OKsp:register", &op, &address, &letters, &is_view)) return NULL;
    const enum signature signature = signature_of(letters);
    if (signature == SIGNATURES) Py_RETURN_NONE;
    function *f = PyMem_Malloc(sizeof *f);
    if (!f) return PyErr_NoMemory();
    *f = (function){ (uintptr_t)address, signature, is_view };
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
    { "start", start, METH_VARARGS, NULL },        { "register", add_function, METH_VARARGS, NULL },
    { "bind", bind_operator, METH_VARARGS, NULL }, { "use", use, METH_O, NULL },
    { "make", make, METH_VARARGS, NULL },          { "value", value, METH_O, NULL },
    { "evaluate", evaluate, METH_O, NULL },        { NULL, NULL, 0, NULL },
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
    address_name = PyUnicode_InternFromString("_as_parameter_");
    if (empty && functions && address_name && (matrix_type = add_type(module, "Matrix", &matrix_spec)) &&
        (node_type = add_type(module, "Node", &node_spec)) &&
        (array_base = add_type(module, "Array", &array_spec)) &&
        (operator_type = add_type(module, "Operator", &operator_spec)) &&
        add_type(module, "State", &state_spec))
        return module;
    Py_DECREF(module);
    return NULL;
}
