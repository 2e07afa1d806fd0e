/* Until 3.13: a version in every dict. */

static const uint64_t *
dict_version(PyObject *dict)
{
    _Pragma("GCC diagnostic push")
    _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    return &((PyDictObject *)dict)->ma_version_tag;
    _Pragma("GCC diagnostic pop")
}
