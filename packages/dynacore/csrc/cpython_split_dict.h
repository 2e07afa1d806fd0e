/* The layout of dicts in 3.11 and 3.12: a version in every dict, keys that may be shared with values beside them. */

const uint64_t *
cpython_dict_version(PyObject *dict)
{
    _Pragma("GCC diagnostic push")
    _Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
    return &((PyDictObject *)dict)->ma_version_tag;
    _Pragma("GCC diagnostic pop")
}

static Word
word_now(const void *address)
{
    return (Word){address, *(const uint64_t *)address};
}

int
cpython_dict_value_words(PyObject *dict, PyObject *key, Word *words)
{
    PyDictObject *table = (PyDictObject *)dict;
    PyDictKeysObject *keys = table->ma_keys;
    PyDictUnicodeEntry *entries = DK_IS_UNICODE(keys) ? DK_UNICODE_ENTRIES(keys) : NULL;
    Py_ssize_t i = 0;
    while (entries != NULL && i < keys->dk_nentries && entries[i].me_key != key) {
        i++;
    }
    if (entries == NULL || i == keys->dk_nentries) {
        return 0;
    }
    words[0] = word_now(&table->ma_keys);
    if (table->ma_values != NULL) { /* shared keys are only ever added to: the place stays the key's */
        words[1] = word_now(&table->ma_values);
        words[2] = word_now(&table->ma_values->values[i]);
        return 3;
    }
    words[1] = word_now(&keys->dk_nentries); /* the keys may be others at the same address, and fewer */
    words[2] = word_now(&entries[i].me_key);
    words[3] = word_now(&entries[i].me_value);
    return 4;
}
