/* Reading torch's memory. */
#include "torch_memory.h"
#include <dlfcn.h>
#include <string.h>

#define CACHE_LINE 64

/* ---- tensors ---- */

/* Places in the object that torch keeps behind a tensor, and in the one for its autograd, in words. */
static struct {
    PyTypeObject *plain, *parameter; /* types whose tensors behave as the memory says; NULL: nothing is known */
    Py_ssize_t body;                 /* byte in the Python object, of the pointer to torch's */
    Py_ssize_t n_dims, sizes, strides, autograd, kind, keys;
    uint64_t kind_mask;
    uint64_t autograd_class; /* first word of an autograd object that isn't a view's */
    Py_ssize_t grad_fn;
    Py_ssize_t requires_grad; /* byte */
} layout;

const uint64_t *
tensor_body(PyObject *tensor)
{
    PyTypeObject *type = Py_TYPE(tensor);
    if (layout.plain == NULL || (type != layout.plain && type != layout.parameter)) {
        return NULL;
    }
    return *(const uint64_t **)((char *)tensor + layout.body);
}

static const uint64_t *
body_of(PyObject *tensor)
{
    const uint64_t *body = tensor_body(tensor);
    return body != NULL && body[layout.n_dims] <= MAX_DIMS ? body : NULL;
}

static const char *
autograd_of(const uint64_t *body)
{
    return (const char *)body[layout.autograd];
}

/* -1: that takes more than memory. The flag lies where it does in a view's autograd object too, and decides if set. */
static int
requires_grad(const uint64_t *body)
{
    const char *autograd = autograd_of(body);
    if (autograd == NULL) {
        return 0;
    }
    if (autograd[layout.requires_grad] != 0) {
        return 1;
    }
    const uint64_t *words = (const uint64_t *)autograd;
    return words[0] != layout.autograd_class ? -1 : words[layout.grad_fn] != 0;
}

void
tensor_fetch(const uint64_t *body, int any_grad)
{
    /* What is compared lies between these two, in other tensors' words than those that were met last. */
    const char *first = (const char *)(body + (any_grad ? layout.n_dims : layout.autograd)), *last = (const char *)(body + layout.keys);
    for (; first < last; first += CACHE_LINE) {
        __builtin_prefetch(first);
    }
    __builtin_prefetch(last);
}

void
tensor_fetch_autograd(const uint64_t *body)
{
    const char *autograd = autograd_of(body);
    if (autograd != NULL) {
        __builtin_prefetch(autograd + layout.requires_grad);
    }
}

int
tensor_read(PyObject *tensor, TensorWords *words, int any_grad)
{
    const uint64_t *body = body_of(tensor);
    int grad = body == NULL ? -1 : any_grad ? ANY_GRAD : requires_grad(body);
    if (grad < 0) {
        return 0;
    }
    memset(words, 0, sizeof *words); /* they are compared byte by byte */
    words->type = Py_TYPE(tensor);
    words->kind = body[layout.kind] & layout.kind_mask;
    words->keys = body[layout.keys];
    words->requires_grad = (char)grad;
    words->n_dims = (int)body[layout.n_dims];
    memcpy(words->sizes, body + layout.sizes, words->n_dims * sizeof(int64_t));
    memcpy(words->strides, body + layout.strides, words->n_dims * sizeof(int64_t));
    return 1;
}

int
tensor_has(PyObject *tensor, const TensorWords *words)
{
    if (Py_TYPE(tensor) != words->type) {
        return 0;
    }
    const uint64_t *body = body_of(tensor);
    if (body == NULL || body[layout.n_dims] != (uint64_t)words->n_dims || body[layout.keys] != words->keys ||
        (body[layout.kind] & layout.kind_mask) != words->kind) {
        return 0;
    }
    const int64_t *sizes = (const int64_t *)body + layout.sizes, *strides = (const int64_t *)body + layout.strides;
    for (int i = 0; i < words->n_dims; i++) {
        if ((sizes[i] != words->sizes[i] && !(words->any_size >> i & 1)) ||
            (strides[i] != words->strides[i] && !(words->any_stride >> i & 1))) {
            return 0;
        }
    }
    return words->requires_grad == ANY_GRAD || requires_grad(body) == words->requires_grad;
}

void
tensor_words_allow(TensorWords *words, const TensorWords *before)
{
    if (before->type == words->type && before->n_dims == words->n_dims) {
        words->any_size = before->any_size;
        words->any_stride = before->any_stride;
        for (int i = 0; i < words->n_dims; i++) {
            words->any_size |= (before->sizes[i] != words->sizes[i]) << i;
            words->any_stride |= (before->strides[i] != words->strides[i]) << i;
        }
    }
}

int
tensor_has_other_sizes(PyObject *tensor, const int64_t *sizes, Py_ssize_t n_dims)
{
    const uint64_t *body = body_of(tensor);
    if (body == NULL) {
        return 0;
    }
    const int64_t *found = (const int64_t *)body + layout.sizes;
    int differs = body[layout.n_dims] != (uint64_t)n_dims;
    for (Py_ssize_t i = 0; !differs && i < n_dims; i++) {
        differs = sizes[i] >= 0 && sizes[i] != found[i];
    }
    return differs;
}

/* ---- state ---- */

/* How to read one word where that takes a call of torch. */
typedef struct {
    uint64_t (*function)(void *, int, int);
    void *self;
    int first, second;
    uint64_t mask; /* of the result */
    int vector;    /* the result points to a vector: whether that is empty counts */
} Reader;

/* A word that is simply there. */
typedef struct {
    const uint64_t *address;
    uint64_t mask;
} Load;

static Reader readers[MAX_STATE];
static Load loads[MAX_STATE];
/* The switches' come behind the others. */
static int n_readers, n_switch_readers, n_loads, n_switch_loads;
static int is_known; /* where all of it lies */
static void *keys_library;
static const char *keys_name;
static uint64_t autocast_mask, autocast_off; /* these bits of the second word are so while no autocast is on */
static _Thread_local const uint64_t *thread_keys;

int
torch_state_read(uint64_t *words, int with_switches)
{
    if (!is_known) {
        return 0;
    }
    int n_words = n_loads + (with_switches ? n_switch_loads : 0), n = n_readers + (with_switches ? n_switch_readers : 0);
    if (thread_keys == NULL && (thread_keys = dlsym(keys_library, keys_name)) == NULL) {
        return 0;
    }
    words[0] = thread_keys[0];
    words[1] = thread_keys[1];
    if ((words[1] & autocast_mask) != autocast_off) {
        return 0; /* which types it casts to is kept elsewhere */
    }
    words += 2;
    for (int i = 0; i < n_words; i++) {
        words[i] = *loads[i].address & loads[i].mask;
    }
    words += n_words;
    for (int i = 0; i < n; i++) {
        const Reader *reader = &readers[i];
        uint64_t word = reader->function(reader->self, reader->first, reader->second);
        if (reader->vector) {
            const uint64_t *ends = (const uint64_t *)word;
            word = ends[1] - ends[0];
        }
        words[i] = word & reader->mask;
    }
    return 2 + n_words + n;
}

/* ---- for Python ---- */

PyObject *
module_set_tensor_layout(PyObject *module, PyObject *given)
{
    (void)module;
    if (given == Py_None) {
        layout.plain = layout.parameter = NULL;
        Py_RETURN_NONE;
    }
    PyTypeObject *plain, *parameter;
    unsigned long long mask, class;
    if (!PyArg_ParseTuple(given, "O!O!nnnnnnnKKnn", &PyType_Type, &plain, &PyType_Type, &parameter, &layout.body,
                          &layout.n_dims, &layout.sizes, &layout.strides, &layout.autograd, &layout.kind, &layout.keys,
                          &mask, &class, &layout.grad_fn, &layout.requires_grad)) {
        return NULL;
    }
    layout.kind_mask = mask;
    layout.autograd_class = class;
    layout.plain = (PyTypeObject *)Py_NewRef(plain); /* they live as long as torch does */
    layout.parameter = (PyTypeObject *)Py_NewRef(parameter);
    Py_RETURN_NONE;
}

static int
parse_reader(PyObject *given, int at)
{
    Reader *reader = &readers[at];
    unsigned long long function, self, mask;
    if (!PyArg_ParseTuple(given, "KKiiKp", &function, &self, &reader->first, &reader->second, &mask, &reader->vector)) {
        return -1;
    }
    reader->function = (uint64_t(*)(void *, int, int))(uintptr_t)function;
    reader->self = (void *)(uintptr_t)self;
    reader->mask = mask;
    return 0;
}

static int
parse_load(PyObject *given, int at)
{
    unsigned long long address, mask;
    if (!PyArg_ParseTuple(given, "KK", &address, &mask)) {
        return -1;
    }
    loads[at] = (Load){(const uint64_t *)(uintptr_t)address, mask};
    return 0;
}

/* Those for every entry, then the switches'. */
static int
parse_all(PyObject *some, PyObject *more, int (*parse)(PyObject *given, int at))
{
    Py_ssize_t n = PyTuple_GET_SIZE(some), all = n + PyTuple_GET_SIZE(more);
    if (all > MAX_STATE) {
        PyErr_Format(PyExc_ValueError, "at most %d words", MAX_STATE);
        return -1;
    }
    for (Py_ssize_t i = 0; i < all; i++) {
        if (parse(i < n ? PyTuple_GET_ITEM(some, i) : PyTuple_GET_ITEM(more, i - n), (int)i) < 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *
module_set_state_readers(PyObject *module, PyObject *given)
{
    (void)module;
    is_known = 0;
    if (given == Py_None) {
        Py_RETURN_NONE;
    }
    unsigned long long library, mask, off;
    const char *name;
    PyObject *functions, *switches, *places, *switch_places;
    if (!PyArg_ParseTuple(given, "KyKKO!O!O!O!", &library, &name, &mask, &off, &PyTuple_Type, &functions, &PyTuple_Type,
                          &switches, &PyTuple_Type, &places, &PyTuple_Type, &switch_places) ||
        parse_all(functions, switches, parse_reader) < 0 || parse_all(places, switch_places, parse_load) < 0) {
        return NULL;
    }
    n_readers = (int)PyTuple_GET_SIZE(functions);
    n_switch_readers = (int)PyTuple_GET_SIZE(switches);
    n_loads = (int)PyTuple_GET_SIZE(places);
    n_switch_loads = (int)PyTuple_GET_SIZE(switch_places);
    if (2 + n_readers + n_switch_readers + n_loads + n_switch_loads > MAX_STATE) {
        return PyErr_Format(PyExc_ValueError, "at most %d words", MAX_STATE);
    }
    char *copy = strdup(name);
    if (copy == NULL) {
        return PyErr_NoMemory();
    }
    keys_name = copy;
    keys_library = (void *)(uintptr_t)library;
    autocast_mask = mask;
    autocast_off = off;
    is_known = 1;
    Py_RETURN_NONE;
}

static PyObject *
numbers(const int64_t *items, int n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple != NULL && i < n; i++) {
        PyObject *number = PyLong_FromLongLong(items[i]);
        if (number == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, number);
    }
    return tuple;
}

PyObject *
module_tensor_words(PyObject *module, PyObject *tensor)
{
    (void)module;
    TensorWords words;
    if (!tensor_read(tensor, &words, 0)) {
        Py_RETURN_NONE;
    }
    return Py_BuildValue("OKKNNN", words.type, (unsigned long long)words.kind, (unsigned long long)words.keys,
                         PyBool_FromLong(words.requires_grad), numbers(words.sizes, words.n_dims),
                         numbers(words.strides, words.n_dims));
}

PyObject *
module_state_words(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    uint64_t words[MAX_STATE];
    int n = torch_state_read(words, 1);
    return n > 0 ? numbers((int64_t *)words, n) : Py_NewRef(Py_None);
}
