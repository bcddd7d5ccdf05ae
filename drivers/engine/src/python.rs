//! The Python interface, documented in `_native.pyi`: converts values, and releases the interpreter
//! lock while it waits.
#![allow(clippy::needless_pass_by_value)] // values from Python are owned

use crate::checksum::checksum_of;
use crate::config::Config;
use crate::content::Content;
use crate::engine;
use crate::histograms;
use crate::link;
use crate::null;
use crate::picker;
use crate::random::{Random, hash};
use crate::ring::Ring;
use crate::sign::{self, keys::Keys};
use crate::signing::Checksum;
use crate::sys;
use crate::workload::{WorkerId, Workload, put_object_name, put_written_name};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyStopIteration, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;

fn json(value: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

#[pyclass(frozen)]
struct Engine(engine::Engine);

#[pymethods]
impl Engine {
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<Self> {
        let config = Config::parse(config).map_err(PyValueError::new_err)?;
        py.detach(|| engine::Engine::new(config)).map(Self).map_err(PyValueError::new_err)
    }

    #[pyo3(signature = (first, count, stride, parallel, version=None))]
    fn prepare(
        &self,
        first: u64,
        count: u64,
        stride: u64,
        parallel: u64,
        version: Option<u64>,
    ) -> PyResult<()> {
        self.0.prepare(first, count, stride, parallel, version).map_err(PyValueError::new_err)
    }

    fn know_versions(&self, ids: Vec<String>) -> PyResult<()> {
        self.0.know_versions(ids).map_err(PyValueError::new_err)
    }

    fn add_worker(&self, index: u64, of: u64, repeat: u64) -> PyResult<()> {
        self.0.add_worker(index, of, repeat).map_err(PyValueError::new_err)
    }

    fn remove_worker(&self, index: u64) {
        self.0.remove_worker(index);
    }

    fn renew_keys(&self, keys: (String, String, String)) -> PyResult<()> {
        let (access, secret, token) = keys;
        self.0.renew_keys(&Keys { access, secret, token }).map_err(PyValueError::new_err)
    }

    fn started(&self) -> u64 {
        self.0.started()
    }

    fn open_window(&self, py: Python<'_>) {
        py.detach(|| self.0.open_window());
    }

    fn close_window(&self, py: Python<'_>) {
        py.detach(|| self.0.close_window());
    }

    fn stop(&self, py: Python<'_>, timeout_s: f64) -> PyResult<u64> {
        let timeout = Duration::try_from_secs_f64(timeout_s)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.detach(|| self.0.stop(timeout)).map_err(PyRuntimeError::new_err)
    }

    fn progress(&self, py: Python<'_>) -> PyResult<String> {
        json(&py.detach(|| self.0.progress()).map_err(PyRuntimeError::new_err)?)
    }

    fn snapshot(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| json(&self.0.snapshot()))
    }

    fn delete_listed(&self, numbers: Vec<u64>, parallel: u64) -> PyResult<()> {
        self.0.delete_listed(numbers, parallel).map_err(PyValueError::new_err)
    }

    fn delete(&self, what: &str, parallel: u64) -> PyResult<()> {
        self.0.delete(what, parallel).map_err(PyValueError::new_err)
    }
}

#[pyclass]
struct Picker(picker::Picker);

#[pymethods]
impl Picker {
    #[new]
    fn new(workload: &str, seed: u64, workers: u64, repeat: u64, index: u64) -> PyResult<Self> {
        let workload = Workload::parse(workload).map_err(PyValueError::new_err)?;
        if index >= workers {
            return Err(PyValueError::new_err(format!(
                "worker {index} of {workers}: numbers begin at 0"
            )));
        }
        let id = WorkerId { workers, repeat, worker: index };
        Ok(Self(picker::Picker::new(Arc::new(workload), seed, id)))
    }

    fn next(&mut self) -> PyResult<(&'static str, u64, i64, u64)> {
        let request =
            self.0.next().ok_or_else(|| PyStopIteration::new_err("nothing is left to delete"))?;
        let word = request.operation.word();
        let index = match request.object {
            picker::Object::Written(index) if word == "delete" => -1 - index as i64,
            picker::Object::Prepared(index) | picker::Object::Written(index) => index as i64,
        };
        Ok((word, request.container, index, request.size))
    }
}

#[pyfunction]
fn object_size(workload: &str, seed: u64, container: u64, index: u64) -> PyResult<u64> {
    Ok(Workload::parse(workload)
        .map_err(PyValueError::new_err)?
        .object_size(seed, container, index))
}

#[pyfunction]
fn object_sizes(
    py: Python<'_>,
    workload: &str,
    seed: u64,
    first: u64,
    count: u64,
) -> PyResult<Vec<u64>> {
    let workload = Workload::parse(workload).map_err(PyValueError::new_err)?;
    let size = |number| {
        let (container, index) = workload.place(number);
        workload.object_size(seed, container, index)
    };
    Ok(py.detach(|| (first..first + count).map(size).collect()))
}

fn text(bytes: Vec<u8>) -> PyResult<String> {
    String::from_utf8(bytes).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

#[pyfunction]
fn object_name(index: u64) -> PyResult<String> {
    let mut name = Vec::new();
    put_object_name(&mut name, index);
    text(name)
}

#[pyfunction]
fn written_name(workers: u64, repeat: u64, worker: u64, index: u64) -> PyResult<String> {
    let mut name = Vec::new();
    put_written_name(&mut name, &WorkerId { workers, repeat, worker }, index);
    text(name)
}

#[pyfunction]
#[pyo3(signature = (seed, size, offset, length, compressible=None, version=0))]
fn content(
    py: Python<'_>,
    seed: u64,
    size: u64,
    offset: u64,
    length: usize,
    compressible: Option<f64>,
    version: u64,
) -> Bound<'_, PyBytes> {
    let content = Content::of(seed, compressible).of_version(version);
    PyBytes::new(py, &content.copy(size, offset, length))
}

#[pyfunction]
fn checksum(py: Python<'_>, algorithm: &str, seed: u64, size: u64) -> PyResult<String> {
    let kind = match algorithm {
        "crc32" => Checksum::Crc32,
        "crc64nvme" => Checksum::Crc64nvme,
        other => return Err(PyValueError::new_err(format!("no checksum {other:?}"))),
    };
    let content = Content::of(seed, None);
    Ok(py.detach(|| checksum_of(kind, &content, size)))
}

#[pyfunction]
fn ring_place(ring: &str, path: &str) -> PyResult<(u32, Vec<usize>)> {
    let ring = Ring::parse(ring).map_err(PyValueError::new_err)?;
    let partition = ring.partition(path.as_bytes());
    Ok((partition, (0..ring.replicas()).map(|replica| ring.disk(partition, replica)).collect()))
}

#[pyfunction]
fn sample(seed: Vec<u64>, population: u64, count: u64) -> PyResult<Vec<u64>> {
    if count > population {
        return Err(PyValueError::new_err(format!("no {count} of {population}")));
    }
    Ok(Random::new(hash(&seed)).sample(population, count))
}

#[pyfunction]
fn signed_headers(
    keys: (String, String, String),
    region: &str,
    host: &str,
    method: &str,
    path: &str,
    query: &str,
    unix_s: u64,
) -> String {
    sign::signed_headers([&keys.0, &keys.1, &keys.2], region, host, method, path, query, unix_s)
}

#[pyfunction]
fn shake_hands(
    py: Python<'_>,
    address: &str,
    host: &str,
    ca_file: Option<&str>,
    within_s: f64,
) -> PyResult<()> {
    let within = Duration::try_from_secs_f64(within_s).unwrap_or_default();
    let address = address.parse().map_err(|_| PyValueError::new_err("not an address"))?;
    py.detach(|| link::shake_hands(address, host, ca_file, within)).map_err(PyOSError::new_err)
}

#[pyfunction]
fn added_histograms(py: Python<'_>, encoded: Vec<String>) -> PyResult<String> {
    py.detach(|| histograms::added(encoded.iter().map(String::as_str)))
        .map_err(PyValueError::new_err)
}

#[pyfunction]
fn socket_options() -> PyResult<Vec<(&'static str, String)>> {
    sys::socket_options().map_err(PyOSError::new_err)
}

#[pyfunction]
fn null_target(py: Python<'_>, config: &str) -> PyResult<()> {
    let config = null::Config::parse(config).map_err(PyValueError::new_err)?;
    py.detach(|| null::serve_until_signal(&config)).map_err(PyOSError::new_err)
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Engine>()?;
    module.add_class::<Picker>()?;
    module.add_function(wrap_pyfunction!(object_size, module)?)?;
    module.add_function(wrap_pyfunction!(object_sizes, module)?)?;
    module.add_function(wrap_pyfunction!(object_name, module)?)?;
    module.add_function(wrap_pyfunction!(written_name, module)?)?;
    module.add_function(wrap_pyfunction!(content, module)?)?;
    module.add_function(wrap_pyfunction!(checksum, module)?)?;
    module.add_function(wrap_pyfunction!(signed_headers, module)?)?;
    module.add_function(wrap_pyfunction!(shake_hands, module)?)?;
    module.add_function(wrap_pyfunction!(ring_place, module)?)?;
    module.add_function(wrap_pyfunction!(sample, module)?)?;
    module.add_function(wrap_pyfunction!(added_histograms, module)?)?;
    module.add_function(wrap_pyfunction!(null_target, module)?)?;
    module.add_function(wrap_pyfunction!(socket_options, module)?)?;
    Ok(())
}
