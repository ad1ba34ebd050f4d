//! The exposition, byte by byte: dashboards and alerts hang on it.

use super::*;

fn requests(metrics: &Metrics) -> String {
    let mut out = String::new();
    metrics.write_requests(&mut out);
    out
}

#[test]
fn what_was_never_counted_has_no_family() {
    assert_eq!(requests(&Metrics::default()), "");
}

#[test]
fn requests_are_written_as_dashboards_know_them() {
    let metrics = Metrics::default();
    let micros = Duration::from_micros;
    metrics.request("get", "triggers", StatusCode::OK, micros(50));
    metrics.request("get", "triggers", StatusCode::OK, micros(51));
    metrics.request(
        "get",
        "secrets",
        StatusCode::UNAUTHORIZED,
        micros(2_000_000),
    );
    metrics.request("create", "brokers", StatusCode::CREATED, micros(1_500));
    let lines = |verb: &str, sum: &str, counts: [u64; 17]| {
        let bounds = [
            "0.00005", "0.0001", "0.0002", "0.0004", "0.0008", "0.0016", "0.0032", "0.0064",
            "0.0128", "0.0256", "0.0512", "0.1024", "0.2048", "0.4096", "0.8192", "1.6384", "+Inf",
        ];
        let name = "heddle_api_request_seconds";
        let mut text = format!(
            "{name}_sum{{verb=\"{verb}\"}} {sum}\n{name}_count{{verb=\"{verb}\"}} {}\n",
            counts[16]
        );
        for (bound, count) in bounds.iter().zip(counts) {
            text += &format!("{name}_bucket{{le=\"{bound}\",verb=\"{verb}\"}} {count}\n");
        }
        text
    };
    let create = lines(
        "create",
        "0.0015",
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    );
    let get = lines(
        "get",
        "2.000101",
        [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3],
    );
    let expected = format!(
        "# HELP heddle_api_requests Requests by verb, resource and status code.\n\
         # TYPE heddle_api_requests counter\n\
         heddle_api_requests_total{{verb=\"create\",resource=\"brokers\",code=\"201\"}} 1\n\
         heddle_api_requests_total{{verb=\"get\",resource=\"triggers\",code=\"200\"}} 2\n\
         heddle_api_requests_total{{verb=\"get\",resource=\"unknown\",code=\"401\"}} 1\n\
         # HELP heddle_api_request_seconds Time to answer, watches up to their start.\n\
         # TYPE heddle_api_request_seconds histogram\n\
         {create}{get}"
    );
    assert_eq!(requests(&metrics), expected);
}

#[test]
fn the_store_is_written_as_dashboards_know_it() {
    let mut stats = Stats {
        commits_count: 3,
        watchers_count: 17,
        history_bytes: 4096,
        ..Stats::default()
    };
    stats.group_writes.sum = 12.0;
    let mut out = String::new();
    write_store(&mut out, &stats, true);
    assert_eq!(
        out,
        "# HELP heddle_api_commits Groups of writes made durable since start.\n\
         # TYPE heddle_api_commits counter\n\
         heddle_api_commits_total 3\n\
         # HELP heddle_api_commit_writes Writes made durable since start.\n\
         # TYPE heddle_api_commit_writes counter\n\
         heddle_api_commit_writes_total 12\n\
         # HELP heddle_api_watchers Open watches, the server's own included.\n\
         # TYPE heddle_api_watchers gauge\n\
         heddle_api_watchers 17\n\
         # HELP heddle_api_history_bytes Memory held by the watch history.\n\
         # TYPE heddle_api_history_bytes gauge\n\
         heddle_api_history_bytes 4096\n\
         # HELP heddle_api_store_serving 1 while writes are acknowledged.\n\
         # TYPE heddle_api_store_serving gauge\n\
         heddle_api_store_serving 1\n"
    );
}
