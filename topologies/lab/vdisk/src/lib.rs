//! Disks that behave like disks: files in a FUSE file system, for loop devices above them.
//!
//! `drive` is a disk in its own time, and knows no clock; `disk` runs one in real time; `store`
//! keeps its data, of which the cache's are not in the durable file; `mount` is the file system.
//! `journal` has disks whose power can be cut, `replay` what a cut leaves of them; `recorded` is one
//! of them for `mount`. `failing` lets any disk fail.

pub mod chance;
pub mod counts;
pub mod dirty;
pub mod disk;
pub mod drive;
pub mod failing;
pub mod flash;
pub(crate) mod head;
pub mod journal;
pub mod model;
pub mod mount;
pub(crate) mod platter;
pub mod recorded;
pub mod replay;
pub mod simulate;
pub mod store;
