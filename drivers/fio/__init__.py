"""Load by fio, beside a gateway on the same store: RBD by its rbd engine, CephFS by ceph-fuse."""
