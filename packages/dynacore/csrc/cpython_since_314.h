/* Since 3.14: dicts have no version. */

static const uint64_t *
dict_version(PyObject *dict)
{
    (void)dict;
    return NULL;
}
