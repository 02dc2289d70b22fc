/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool of a process as a Python type, on libmyelin. `Run` is a subclass of it, so that
 * `run.log` is the method below itself: one frame of Python in between would double its cost, and
 * so would a dictionary of the keywords. `_fallback.py` is the same type in Python.
 *
 * The interpreter's lock is held throughout: a call takes less time than giving the lock away
 * would, and no other thread can be in a call of the same handle. The table of names, the set of
 * warned names and the end of the handle rely on that, so the module does not declare Py_mod_gil: a
 * free-threaded Python turns its lock on when it is imported.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "myelin.h"

enum {
    AT_ONCE = 16,     /* metrics of a call that need no memory from the heap */
    NAMES_SMALL = 64, /* slots of the first table */
    WARNINGS_MOST = 100
};

/* The number of a name by the address of its text. Keywords in code are interned, so that one
 * name has one address, and the table holds a reference, so that an address is not used again. */
struct slot {
    PyObject *name; /* NULL: free */
    uint32_t number;
};

struct spool {
    PyObject_HEAD struct myelin *handle; /* NULL: closed */
    struct slot *slots;
    size_t mask, used;
    uint64_t dropped; /* when it was closed */
    PyObject *warned; /* names whose values were told not to be numbers */
};

static PyObject *step_text; /* "step", interned */

/* ---- names */

static size_t place_of(const PyObject *name) {
    return (size_t)((uintptr_t)name >> 4);
}

static int grow(struct spool *self) {
    const size_t mask = self->slots ? self->mask * 2 + 1 : NAMES_SMALL - 1;
    struct slot *slots = PyMem_Calloc(mask + 1, sizeof *slots);

    if (!slots) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; self->slots && i <= self->mask; i++) {
        size_t at = place_of(self->slots[i].name) & mask;

        if (!self->slots[i].name)
            continue;
        while (slots[at].name)
            at = (at + 1) & mask;
        slots[at] = self->slots[i];
    }
    PyMem_Free(self->slots);
    self->slots = slots;
    self->mask = mask;
    return 0;
}

/* The number that libmyelin gives the name; -1 with an exception. */
static int ask(struct spool *self, PyObject *name, uint32_t *number) {
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(name, &n);
    PyObject *bytes;

    if (text) {
        *number = myelin_name_n(self->handle, text, (size_t)n);
        return 0;
    }
    PyErr_Clear(); /* half of a surrogate pair */
    bytes = PyUnicode_AsEncodedString(name, "utf-8", "replace");
    if (!bytes)
        return -1;
    *number =
        myelin_name_n(self->handle, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
    return 0;
}

static int learn(struct spool *self, PyObject *name, uint32_t *number) {
    size_t at;

    if (ask(self, name, number))
        return -1;
    if (*number == MYELIN_NO_NAME || !PyUnicode_CHECK_INTERNED(name))
        return 0;
    if (2 * self->used >= self->mask && grow(self))
        return -1;
    for (at = place_of(name) & self->mask; self->slots[at].name; at = (at + 1) & self->mask)
        ;
    Py_INCREF(name);
    self->slots[at] = (struct slot){ name, *number };
    self->used++;
    return 0;
}

static inline int number_of(struct spool *self, PyObject *name, uint32_t *number) {
    if (self->slots)
        for (size_t at = place_of(name) & self->mask; self->slots[at].name;
             at = (at + 1) & self->mask)
            if (self->slots[at].name == name) {
                *number = self->slots[at].number;
                return 0;
            }
    return learn(self, name, number);
}

/* Keywords that come out of a dictionary need not be interned. */
static inline int is_step(PyObject *name) {
    return name == step_text ||
           (!PyUnicode_CHECK_INTERNED(name) && PyUnicode_Compare(name, step_text) == 0);
}

/* ---- values */

/* Tells once for each name what is wrong with its value. -1 when warnings are errors. */
static int warn_once(struct spool *self, PyObject *name, PyObject *value) {
    PyObject *type, *why, *trace;
    int status;

    PyErr_Fetch(&type, &why, &trace);
    PyErr_NormalizeException(&type, &why, &trace);
    if (!self->warned)
        self->warned = PySet_New(NULL);
    status = self->warned ? PySet_Contains(self->warned, name) : -1;
    if (status == 0 && PySet_GET_SIZE(self->warned) >= WARNINGS_MOST)
        status = 1;
    if (status == 0)
        status =
            PySet_Add(self->warned, name)
                ? -1
                : PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                                   "the value of '%U' is not a number (%s): it is not kept (%S)",
                                   name, Py_TYPE(value)->tp_name, why ? why : Py_None);
    else if (status > 0)
        status = 0;
    Py_XDECREF(type);
    Py_XDECREF(why);
    Py_XDECREF(trace);
    return status;
}

/* 1: the value is no number, which is data and must not end a training. -1: an exception that is
 * no error, such as KeyboardInterrupt, or a warning that the user made an error. */
static inline int number_from(struct spool *self, PyObject *name, PyObject *value, double *out) {
    if (PyFloat_CheckExact(value)) {
        *out = PyFloat_AS_DOUBLE(value);
        return 0;
    }
    *out = PyFloat_AsDouble(value);
    if (*out != -1.0 || !PyErr_Occurred())
        return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    return warn_once(self, name, value) ? -1 : 1;
}

static int step_from(PyObject *given, int64_t *step) {
    PyObject *whole;
    long long value;

    if (given == Py_None)
        return 0;
    if (PyLong_CheckExact(given)) {
        value = PyLong_AsLongLong(given);
    } else {
        whole = PyNumber_Index(given);
        if (!whole)
            return -1;
        value = PyLong_AsLongLong(whole);
        Py_DECREF(whole);
    }
    if (value == -1 && PyErr_Occurred())
        return -1;
    if (value == MYELIN_AUTO) {
        PyErr_SetString(PyExc_OverflowError, "the step is too small");
        return -1;
    }
    *step = value;
    return 0;
}

/* What a call logs: its arguments, made plain. */
struct batch {
    uint32_t *names;
    double *values;
    size_t n, room, lost;
    uint32_t small_names[AT_ONCE];
    double small_values[AT_ONCE];
};

static int batch_open(struct batch *batch, size_t room) {
    batch->names = batch->small_names;
    batch->values = batch->small_values;
    batch->n = batch->lost = 0;
    batch->room = room;
    if (room <= AT_ONCE)
        return 0;
    batch->values = PyMem_Malloc(room * (sizeof *batch->values + sizeof *batch->names));
    if (!batch->values) {
        PyErr_NoMemory();
        return -1;
    }
    batch->names = (uint32_t *)(batch->values + room);
    return 0;
}

static void batch_close(struct batch *batch) {
    if (batch->values != batch->small_values)
        PyMem_Free(batch->values);
}

static inline int batch_add(struct batch *batch, struct spool *self, PyObject *name,
                            PyObject *value) {
    int status = number_from(self, name, value, &batch->values[batch->n]);

    if (status == 0) {
        if (number_of(self, name, &batch->names[batch->n]))
            return -1;
        if (batch->names[batch->n] != MYELIN_NO_NAME) {
            batch->n++;
            return 0;
        }
        status = 1;
    }
    batch->lost += (size_t)(status > 0);
    return status < 0 ? -1 : 0;
}

static void batch_log(const struct batch *batch, struct spool *self, int64_t step) {
    static const uint32_t no_name = MYELIN_NO_NAME;
    static const double nothing = 0;

    if (batch->n > 0)
        (void)myelin_log(self->handle, batch->names, batch->values, batch->n, step, MYELIN_NOW);
    for (size_t i = 0; i < batch->lost; i++)
        (void)myelin_log(self->handle, &no_name, &nothing, 1, step, MYELIN_NOW);
}

/* ---- methods */

static inline Py_ssize_t count_of(PyObject *names) {
    return names ? PyTuple_GET_SIZE(names) : 0;
}

static inline int add_keywords(struct batch *batch, struct spool *self, PyObject *const *values,
                               PyObject *names, int64_t *step) {
    const Py_ssize_t n = count_of(names);
    int status = 0;

    for (Py_ssize_t i = 0; i < n && status == 0; i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);

        if (is_step(name))
            status = step_from(values[i], step);
        else
            status = batch_add(batch, self, name, values[i]);
    }
    return status;
}

/* A dictionary may change while values are asked for: they are Python code. */
static int add_dictionary(struct batch *batch, struct spool *self, PyObject *items) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
        PyObject *pair = PyList_GET_ITEM(items, i);
        PyObject *name = PyTuple_GET_ITEM(pair, 0), *value = PyTuple_GET_ITEM(pair, 1);

        if (!PyUnicode_Check(name)) {
            PyErr_Format(PyExc_TypeError, "the name of a metric is a text, not %s",
                         Py_TYPE(name)->tp_name);
            return -1;
        }
        if (batch_add(batch, self, name, value))
            return -1;
    }
    return 0;
}

/* A list of pairs, of any mapping. */
static PyObject *items_of(PyObject *metrics) {
    PyObject *copy, *items;

    if (PyDict_Check(metrics))
        return PyDict_Items(metrics);
    if (!PyObject_HasAttrString(metrics, "keys"))
        return PyErr_Format(PyExc_TypeError,
                            "log() takes metrics as keywords, or as a dictionary, not %s",
                            Py_TYPE(metrics)->tp_name);
    copy = PyDict_New();
    items = copy && PyDict_Update(copy, metrics) == 0 ? PyDict_Items(copy) : NULL;
    Py_XDECREF(copy);
    return items;
}

static int log_dictionary(struct spool *self, PyObject *metrics, PyObject *const *values,
                          PyObject *names) {
    struct batch batch;
    int64_t step = MYELIN_AUTO;
    PyObject *items;
    int status = -1;

    items = items_of(metrics);
    if (!items)
        return -1;
    if (batch_open(&batch, (size_t)(PyList_GET_SIZE(items) + count_of(names))) == 0) {
        status = add_dictionary(&batch, self, items);
        if (status == 0)
            status = add_keywords(&batch, self, values, names, &step);
        if (status == 0)
            batch_log(&batch, self, step);
        batch_close(&batch);
    }
    Py_DECREF(items);
    return status;
}

static int log_keywords(struct spool *self, PyObject *const *values, PyObject *names) {
    struct batch batch;
    int64_t step = MYELIN_AUTO;
    int status;

    if (batch_open(&batch, (size_t)count_of(names)))
        return -1;
    status = add_keywords(&batch, self, values, names, &step);
    if (status == 0)
        batch_log(&batch, self, step);
    batch_close(&batch);
    return status;
}

PyDoc_STRVAR(log_doc,
             "log(metrics={}, /, *, step=None, **metrics)\n--\n\n"
             "Logs numbers under their names: run.log(loss=0.3, step=7), or run.log({'val/loss': "
             "0.3}).\n\n"
             "Without a step each name counts its own, from 0. What was logged is kept even if the "
             "process\nis killed the moment this returns. A value that is not a number is not "
             "kept, counted in\n`dropped`, and told once by a RuntimeWarning.");

static PyObject *spool_log(PyObject *object, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    struct spool *self = (struct spool *)object;
    int status;

    if (n > 1) {
        PyErr_Format(PyExc_TypeError,
                     "log() takes one dictionary, and metrics as keywords (%zd "
                     "arguments were given)",
                     n);
        return NULL;
    }
    status =
        n == 0 ? log_keywords(self, args, names) : log_dictionary(self, args[0], args + 1, names);
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(record_doc, "_record(kind, json, /)\n--\n\nKeeps a JSON object; whether it was kept.");

static PyObject *spool_record(PyObject *object, PyObject *args) {
    struct spool *self = (struct spool *)object;
    const char *json;
    Py_ssize_t n;
    int kind;

    if (!PyArg_ParseTuple(args, "iy#:_record", &kind, &json, &n))
        return NULL;
    return PyBool_FromLong(myelin_record(self->handle, (enum myelin_kind)kind, json, (size_t)n) ==
                           0);
}

PyDoc_STRVAR(close_doc, "_close()\n--\n\nEnds the chain of this process. Later calls do nothing.");

static PyObject *spool_close(PyObject *object, PyObject *unused) {
    struct spool *self = (struct spool *)object;
    struct myelin *handle = self->handle;

    (void)unused;
    self->dropped = myelin_dropped(handle);
    self->handle = NULL;
    for (size_t i = 0; self->slots && i <= self->mask; i++)
        Py_CLEAR(self->slots[i].name);
    self->used = 0;
    if (handle)
        myelin_close(handle);
    Py_RETURN_NONE;
}

static PyObject *get_dropped(PyObject *object, void *unused) {
    struct spool *self = (struct spool *)object;

    (void)unused;
    return PyLong_FromUnsignedLongLong(self->handle ? myelin_dropped(self->handle) : self->dropped);
}

static PyObject *get_reason(PyObject *object, void *unused) {
    struct spool *self = (struct spool *)object;
    const char *reason = self->handle ? myelin_reason(self->handle) : NULL;

    (void)unused;
    if (!reason)
        Py_RETURN_NONE;
    return PyUnicode_FromString(reason);
}

/* ---- the type */

static int spool_init(PyObject *object, PyObject *args, PyObject *keywords) {
    static char *words[] = { "directory", "attempt", NULL };
    struct spool *self = (struct spool *)object;
    PyObject *directory = NULL, *given = Py_None;
    unsigned attempt = 0;

    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OI:Spool", words, &given, &attempt))
        return -1;
    if (given != Py_None && !PyUnicode_FSConverter(given, &directory))
        return -1;
    Py_XDECREF(spool_close(object, NULL));
    self->handle = myelin_open_at(directory ? PyBytes_AS_STRING(directory) : NULL, attempt);
    Py_XDECREF(directory);
    if (!self->handle) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}

static void spool_free(PyObject *object) {
    struct spool *self = (struct spool *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    Py_XDECREF(spool_close(object, NULL));
    PyMem_Free(self->slots);
    Py_XDECREF(self->warned);
    type->tp_free(object);
#if PY_VERSION_HEX >= 0x03080000 /* before, the dealloc of a subclass did it */
    Py_DECREF(type);
#endif
}

/* All it refers to are texts: nothing of it can be part of a cycle. A subclass has its own. */
static int spool_traverse(PyObject *object, visitproc visit, void *arg) {
    (void)object;
    (void)visit;
    (void)arg;
#if PY_VERSION_HEX >= 0x03090000
    Py_VISIT(Py_TYPE(object));
#endif
    return 0;
}

static PyMethodDef spool_methods[] = {
    { "log", (PyCFunction)(void (*)(void))spool_log, METH_FASTCALL | METH_KEYWORDS, log_doc },
    { "_record", spool_record, METH_VARARGS, record_doc },
    { "_close", spool_close, METH_NOARGS, close_doc },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef spool_members[] = {
    { "dropped", get_dropped, NULL, "How many points this process could not keep.", NULL },
    { "reason", get_reason, NULL, "Why nothing is kept at present, or None.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static PyType_Slot spool_slots[] = {
    { Py_tp_doc, (void *)(uintptr_t) "Where a process logs: Spool(directory=None, attempt=0)." },
    { Py_tp_init, (void *)spool_init },
    { Py_tp_dealloc, (void *)spool_free },
    { Py_tp_traverse, (void *)spool_traverse },
    { Py_tp_methods, spool_methods },
    { Py_tp_getset, spool_members },
    { 0, NULL },
};

static PyType_Spec spool_spec = {
    .name = "myelin._native.Spool",
    .basicsize = sizeof(struct spool),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = spool_slots,
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "myelin._native",
    .m_doc = "The spool of a process, in C.",
    .m_size = -1,
};

/* Before Python 3.9 it was not exported by itself. */
__attribute__((visibility("default"))) PyMODINIT_FUNC PyInit__native(void) {
    PyObject *self = PyModule_Create(&module);
    PyObject *type = self ? PyType_FromSpec(&spool_spec) : NULL;

    step_text = PyUnicode_InternFromString("step");
    if (!type || !step_text || PyModule_AddObject(self, "Spool", type) < 0) {
        Py_XDECREF(type);
        Py_XDECREF(self);
        return NULL;
    }
    return self;
}
