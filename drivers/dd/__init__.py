"""Load by dd on an RBD image or a file of CephFS, as studies measured them before there was fio."""
