/* torch's state and the metadata of tensors, read where they lie in memory. What lies where is found out by
 * dynacore.torch_memory, which tries it out; as long as nothing was found, nothing is read. */
#ifndef DYNACORE_TORCH_MEMORY_H
#define DYNACORE_TORCH_MEMORY_H

#include <Python.h>
#include <stdint.h>

#define MAX_STATE 56
#define ANY_GRAD 2
#define MAX_DIMS 5 /* sizes of more dimensions lie elsewhere */

/* Everything that a guard on a tensor holds it to. */
typedef struct {
    PyTypeObject *type;
    uint64_t kind; /* dtype and device */
    uint64_t keys; /* of dispatch */
    char requires_grad; /* or ANY_GRAD */
    int n_dims;
    unsigned char any_size, any_stride; /* a bit for each dimension that may differ */
    int64_t sizes[MAX_DIMS], strides[MAX_DIMS];
} TensorWords;

/* What torch keeps behind the tensor; NULL where that can't be read. */
const uint64_t *tensor_body(PyObject *tensor);

/* Has the processor fetch what tensor_has will look at: the body, and once that is there, what hangs on it, which
 * tells whether the tensor requires a gradient. */
void tensor_fetch(const uint64_t *body, int any_grad);
void tensor_fetch_autograd(const uint64_t *body);

/* 0: it can't be read. No dimension may differ from what was read, then. */
int tensor_read(PyObject *tensor, TensorWords *words, int any_grad);

/* Both are of tensors that passed one check: sizes and strides in which they differ may differ. */
void tensor_words_allow(TensorWords *words, const TensorWords *before);

/* Whether the tensor has these very metadata; 0 also where it can't be read. */
int tensor_has(PyObject *tensor, const TensorWords *words);

/* Whether the tensor's sizes are known to differ from these, of which -1 stands for any. */
int tensor_has_other_sizes(PyObject *tensor, const int64_t *sizes, Py_ssize_t n_dims);

/* Reads what changes how operations behave in this thread, at most MAX_STATE words; with the switches between kernels,
 * or without. 0: it can't be read, or there is more to it now than the words say. */
int torch_state_read(uint64_t *words, int with_switches);

PyObject *module_set_tensor_layout(PyObject *module, PyObject *layout);
PyObject *module_set_state_readers(PyObject *module, PyObject *readers);
PyObject *module_tensor_words(PyObject *module, PyObject *tensor);
PyObject *module_state_words(PyObject *module, PyObject *unused);

#endif
