use super::*;
use serde_json::json;

/// A small workload for tests, with these fields replaced.
pub(crate) fn workload(keys: &serde_json::Value) -> Workload {
    let mut json = json!({
        "name": "w", "objects": {"size": 100, "containers": 4, "per_container": 25},
        "operations": {"read": 1.0}, "pick": "uniform", "workers": [1], "runtime": 1.0,
        "warmup": 0.0, "rate_per_s": null, "verify": false
    });
    for (key, value) in keys.as_object().expect("an object of keys") {
        json[key] = value.clone();
    }
    Workload::parse(&json.to_string()).expect("a workload")
}

#[test]
fn names_have_fixed_widths() {
    let mut name = Vec::new();
    put_object_name(&mut name, 12);
    assert_eq!(name, b"object-0000000012");
    name.clear();
    put_written_name(&mut name, &WorkerId { workers: 8, repeat: 1, worker: 7 }, 0);
    assert_eq!(name, b"written-00008-0001-00007-0000000000");
    name.clear();
    put_number(&mut name, 123_456, 4);
    assert_eq!(name, b"123456");
}

#[test]
fn sizes_follow_the_histogram() {
    let bars = json!([{"size": 10, "weight": 1.0}, {"size": [20, 29], "weight": 3.0}]);
    let objects = json!({"size": {"histogram": bars}, "containers": 1, "per_container": 1});
    let w = workload(&json!({"objects": objects}));
    let sizes: Vec<u64> = (0..10_000).map(|index| w.object_size(1, 0, index)).collect();
    let small = sizes.iter().filter(|&&size| size == 10).count();
    assert!((2300..2700).contains(&small), "{small}");
    assert!(sizes.iter().all(|&size| size == 10 || (20..=29).contains(&size)));
    assert!((20..=29).all(|size| sizes.contains(&size)));
}

#[test]
fn a_size_depends_on_seed_and_place_only() {
    let size = json!({"size": {"uniform": [0, 1_000_000]}, "containers": 4, "per_container": 25});
    let a = workload(&json!({"objects": size.clone()}));
    let b = workload(&json!({"objects": size, "operations": {"write": 2.0}, "pick": "sequential"}));
    assert_eq!(a.object_size(9, 3, 7), b.object_size(9, 3, 7));
    assert_ne!(a.object_size(9, 3, 7), a.object_size(9, 7, 3));
    assert_ne!(a.object_size(9, 3, 7), a.object_size(8, 3, 7));
}

#[test]
fn every_object_has_a_distinct_place() {
    let w = workload(&json!({}));
    let mut places: Vec<_> = (0..w.count()).map(|number| w.place(number)).collect();
    places.sort_unstable();
    places.dedup();
    assert_eq!(places.len() as u64, w.count());
    assert!(places.iter().all(|&(container, index)| container < 4 && index < 25));
}

#[test]
fn an_invalid_workload_is_refused() {
    for (key, value) in [
        ("operations", json!({})),
        ("operations", json!({"read": 0.0})),
        ("operations", json!({"append": 1.0})),
        ("pick", json!({"zipf": 0.0})),
        ("pick", json!("often")),
        ("objects", json!({"size": {"uniform": [9, 3]}, "containers": 1, "per_container": 1})),
        ("objects", json!({"size": 1, "containers": 0, "per_container": 1})),
        ("rate_per_s", json!(0.0)),
    ] {
        let mut json = json!({
            "name": "w", "objects": {"size": 1, "containers": 1, "per_container": 1},
            "operations": {"read": 1.0}, "pick": "uniform", "rate_per_s": null,
        });
        assert!(Workload::parse(&json.to_string()).is_ok());
        json[key] = value;
        assert!(Workload::parse(&json.to_string()).is_err(), "{json}");
    }
}

#[test]
fn connections_end_after_as_many_requests_as_the_workload_says() {
    let last = |kept: serde_json::Value, before: u64| {
        workload(&json!({"connections": kept})).connections.ends_after(before)
    };
    for before in [0, 1, 1_000_000] {
        assert!(!last(json!("keep-alive"), before));
        assert!(last(json!("per-request"), before));
        assert!(!workload(&json!({})).connections.ends_after(before));
    }
    let every = json!({"reconnect_every": 3});
    assert!(!last(every.clone(), 1) && last(every.clone(), 2) && last(every, 3));
}
