//! The table itself: six dashboards, in the order in which somebody who looks for a fault goes through them.

use super::{Dashboard, Panel, PanelQuery, PanelUnit};

const fn panel(
    title: &'static str,
    unit: PanelUnit,
    about: &'static str,
    queries: &'static [PanelQuery],
) -> Panel {
    Panel {
        title,
        about,
        unit,
        queries,
    }
}

const fn query(legend: &'static str, expression: &'static str) -> PanelQuery {
    PanelQuery { legend, expression }
}

/// All of them.
pub const DASHBOARDS: &[Dashboard] = &[
    BROKER_TRIGGER,
    DELIVERY,
    LATENCY,
    PROCESS,
    BACKLOG,
    HEARTBEATS,
];

const BROKER_TRIGGER: Dashboard = Dashboard {
    slug: "broker-trigger",
    title: "Brokers and Triggers",
    about: "Where events come in, who wants them, and whether flows lead them there.",
    panels: &[
        panel(
            "Accepted, by door",
            PanelUnit::Rate,
            "Events that are safe, by the kind of place they were published to.",
            &[query(
                "{{api}}",
                r#"sum by (api) (rate(heddle_published_total{job=~"$job",app=~"$app",code="2xx"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Wanted, by Trigger",
            PanelUnit::Rate,
            "Events that the filter of a Trigger let pass.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (rate(heddle_matched_total{job=~"$job",ns=~"$ns",kind="trigger"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Filtered out",
            PanelUnit::Rate,
            "Times that a filter turned an event down, by the Application it came from.",
            &[query(
                "{{app}}",
                r#"sum by (app) (rate(heddle_filtered_total{job=~"$job",app=~"$app"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Wanted by nobody",
            PanelUnit::Rate,
            "Events that no filter let pass: a type that is misspelt, or a Trigger that is missing.",
            &[query(
                "{{app}}",
                r#"sum by (app) (rate(heddle_unmatched_total{job=~"$job",app=~"$app"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Passed on",
            PanelUnit::Rate,
            "Events that went on to another Broker or Channel of the same heddle, replies included.",
            &[query(
                "passed on",
                r#"sum(rate(heddle_link_appended_total{job=~"$job"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Failing attempts, part of all",
            PanelUnit::Share,
            "Of the attempts at each Trigger's subscriber, the part that was not answered with success.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (rate(heddle_attempts_total{job=~"$job",app=~"$app",ns=~"$ns",code!="2xx"}[$__rate_interval])) / sum by (ns, trigger) (rate(heddle_attempts_total{job=~"$job",app=~"$app",ns=~"$ns"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Flows that are ready",
            PanelUnit::Count,
            "EventFlows that lead events into a namespace.",
            &[query(
                "ready",
                r#"sum(heddle_flow_condition{job=~"$job",type="Ready",status="True"}) > 0"#,
            )],
        ),
        panel(
            "Flows that lack something",
            PanelUnit::Count,
            "EventFlows by the condition that does not hold.",
            &[query(
                "{{type}} {{status}}",
                r#"sum by (type, status) (heddle_flow_condition{job=~"$job",status="False"}) > 0"#,
            )],
        ),
    ],
};

const DELIVERY: Dashboard = Dashboard {
    slug: "delivery",
    title: "Delivery",
    about: "How publishers and subscribers were answered, and what became of events.",
    panels: &[
        panel(
            "Published, by answer",
            PanelUnit::Rate,
            "What publishers were told: 4xx is theirs to mend, 5xx is heddle's.",
            &[
                query(
                    "{{app}} 2xx",
                    r#"sum by (app) (rate(heddle_published_total{job=~"$job",app=~"$app",code="2xx"}[$__rate_interval])) > 0"#,
                ),
                query(
                    "{{app}} 4xx",
                    r#"sum by (app) (rate(heddle_published_total{job=~"$job",app=~"$app",code=~"4xx|429"}[$__rate_interval])) > 0"#,
                ),
                query(
                    "{{app}} 5xx",
                    r#"sum by (app) (rate(heddle_published_total{job=~"$job",app=~"$app",code="5xx"}[$__rate_interval])) > 0"#,
                ),
            ],
        ),
        panel(
            "Attempts, by answer",
            PanelUnit::Rate,
            "What subscribers answered; none is no answer at all.",
            &[
                query(
                    "{{ns}}/{{trigger}} 2xx",
                    r#"sum by (ns, trigger) (rate(heddle_attempts_total{job=~"$job",app=~"$app",ns=~"$ns",code="2xx"}[$__rate_interval])) > 0"#,
                ),
                query(
                    "{{ns}}/{{trigger}} 4xx",
                    r#"sum by (ns, trigger) (rate(heddle_attempts_total{job=~"$job",app=~"$app",ns=~"$ns",code="4xx"}[$__rate_interval])) > 0"#,
                ),
                query(
                    "{{ns}}/{{trigger}} 5xx",
                    r#"sum by (ns, trigger) (rate(heddle_attempts_total{job=~"$job",app=~"$app",ns=~"$ns",code="5xx"}[$__rate_interval])) > 0"#,
                ),
                query(
                    "{{ns}}/{{trigger}} none",
                    r#"sum by (ns, trigger) (rate(heddle_attempts_total{job=~"$job",app=~"$app",ns=~"$ns",code="none"}[$__rate_interval])) > 0"#,
                ),
            ],
        ),
        panel(
            "Delivered",
            PanelUnit::Rate,
            "Events that a subscriber took.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (rate(heddle_delivered_total{job=~"$job",ns=~"$ns"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Expired",
            PanelUnit::Rate,
            "Events that ended because they or the backlog were too old or too large.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (rate(heddle_expired_total{job=~"$job",ns=~"$ns"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Replies that could not go on",
            PanelUnit::Rate,
            "Answers of subscribers that were meant to be events.",
            &[query(
                "{{ns}}/{{trigger}} {{reason}}",
                r#"sum by (ns, trigger, reason) (rate(heddle_bad_replies_total{job=~"$job",ns=~"$ns"}[$__rate_interval])) > 0"#,
            )],
        ),
    ],
};

const LATENCY: Dashboard = Dashboard {
    slug: "latency",
    title: "Latency",
    about: "How long events take: at each hop, in all, and how long the synthetic ones do.",
    panels: &[
        panel(
            "Half of the events, by hop",
            PanelUnit::Seconds,
            "source: to the answer. channel: to being safe. broker: from then to being matched. trigger: from being safe to the first attempt. delivery: one attempt.",
            &[query(
                "{{hop}} p50",
                r#"histogram_quantile(0.5, sum by (le, hop) (rate(heddle_hop_seconds_bucket{job=~"$job"}[$__rate_interval]))) and on (hop) sum by (hop) (rate(heddle_hop_seconds_count{job=~"$job"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "All but the slowest hundredth, by hop",
            PanelUnit::Seconds,
            "The same of the 99th percentile.",
            &[query(
                "{{hop}} p99",
                r#"histogram_quantile(0.99, sum by (le, hop) (rate(heddle_hop_seconds_bucket{job=~"$job"}[$__rate_interval]))) and on (hop) sum by (hop) (rate(heddle_hop_seconds_count{job=~"$job"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "From accepted to delivered",
            PanelUnit::Seconds,
            "Waiting and retries included.",
            &[
                query(
                    "p50",
                    r#"histogram_quantile(0.5, sum by (le) (rate(heddle_delivery_delay_seconds_bucket{job=~"$job"}[$__rate_interval]))) and sum(rate(heddle_delivery_delay_seconds_count{job=~"$job"}[$__rate_interval])) > 0"#,
                ),
                query(
                    "p99",
                    r#"histogram_quantile(0.99, sum by (le) (rate(heddle_delivery_delay_seconds_bucket{job=~"$job"}[$__rate_interval]))) and sum(rate(heddle_delivery_delay_seconds_count{job=~"$job"}[$__rate_interval])) > 0"#,
                ),
            ],
        ),
        panel(
            "Synthetic events",
            PanelUnit::Seconds,
            "How long the last one took, by Application and namespace; without names it is the canary.",
            &[query(
                "{{app}} {{ns}}",
                r#"heddle_heartbeat_e2e_seconds{job=~"$job",app=~"$app",ns=~"$ns"}"#,
            )],
        ),
        panel(
            "Requests to the resource API",
            PanelUnit::Seconds,
            "The 99th percentile by verb, heddle's own controllers included.",
            &[query(
                "{{verb}} p99",
                r#"histogram_quantile(0.99, sum by (le, verb) (rate(heddle_api_request_seconds_bucket{job=~"$job"}[$__rate_interval]))) and on (verb) sum by (verb) (rate(heddle_api_request_seconds_count{job=~"$job"}[$__rate_interval])) > 0"#,
            )],
        ),
    ],
};

const PROCESS: Dashboard = Dashboard {
    slug: "process",
    title: "Process",
    about: "What heddle takes of the machine, and whether its own parts are at work.",
    panels: &[
        panel(
            "Processor",
            PanelUnit::Share,
            "1 is one core.",
            &[query(
                "{{instance}}",
                r#"rate(process_cpu_seconds_total{job=~"$job"}[$__rate_interval]) and on (job, instance) heddle_api_store_serving"#,
            )],
        ),
        panel(
            "Memory",
            PanelUnit::Bytes,
            "What is resident.",
            &[query(
                "{{instance}}",
                r#"process_resident_memory_bytes{job=~"$job"} and on (job, instance) heddle_api_store_serving"#,
            )],
        ),
        panel(
            "Files and connections",
            PanelUnit::Share,
            "Of those that may be open, the part that is.",
            &[query(
                "{{instance}}",
                r#"process_open_fds{job=~"$job"} / process_max_fds{job=~"$job"} and on (job, instance) heddle_api_store_serving"#,
            )],
        ),
        panel(
            "Up since",
            PanelUnit::Seconds,
            "It falls to nothing with each restart.",
            &[query(
                "{{instance}}",
                r#"time() - process_start_time_seconds{job=~"$job"} and on (job, instance) heddle_api_store_serving"#,
            )],
        ),
        panel(
            "Room for events",
            PanelUnit::Bytes,
            "What the log takes, what its disk has left, and what must be left for events to be accepted.",
            &[
                query("log", r#"heddle_log_bytes{job=~"$job"}"#),
                query("free", r#"heddle_log_free_bytes{job=~"$job"}"#),
                query("needed", r#"heddle_log_needed_bytes{job=~"$job"}"#),
            ],
        ),
        panel(
            "Room that is used",
            PanelUnit::Share,
            "At 1, events are refused.",
            &[query("used", r#"heddle_quota_used_ratio{job=~"$job"}"#)],
        ),
        panel(
            "Objects",
            PanelUnit::Count,
            "Stored objects by kind.",
            &[query(
                "{{resource}}",
                r#"sum by (resource) (heddle_api_objects{job=~"$job"}) > 0"#,
            )],
        ),
        panel(
            "Requests to the resource API",
            PanelUnit::Rate,
            "By answer, those of the controllers included.",
            &[query(
                "{{code}}",
                r#"sum by (code) (rate(heddle_api_requests_total{job=~"$job"}[$__rate_interval])) > 0"#,
            )],
        ),
        panel(
            "Controllers last seen",
            PanelUnit::Seconds,
            "More than 15 seconds is an alert.",
            &[query(
                "{{controller}}",
                r#"heddle_controller_lease_age_seconds{job=~"$job"}"#,
            )],
        ),
    ],
};

const BACKLOG: Dashboard = Dashboard {
    slug: "backlog",
    title: "Backlog and dead letters",
    about: "What has not ended, how old it is, and what is at rest.",
    panels: &[
        panel(
            "Waiting",
            PanelUnit::Count,
            "Events that wait, are under way or are tried again.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (heddle_pending{job=~"$job",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Oldest",
            PanelUnit::Seconds,
            "Age of the oldest event that has not ended.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"max by (ns, trigger) (heddle_oldest_pending_seconds{job=~"$job",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Under way",
            PanelUnit::Count,
            "Attempts that wait for an answer.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (heddle_in_flight{job=~"$job",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Tried again",
            PanelUnit::Count,
            "Events with a failed attempt behind them.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (heddle_retrying{job=~"$job",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Log kept by backlogs",
            PanelUnit::Bytes,
            "Bytes of the log that cannot be trimmed because of a Trigger's unfinished events.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (heddle_kept_bytes{job=~"$job",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Dead letters",
            PanelUnit::Count,
            "Events at rest, by the Application they came from.",
            &[query(
                "{{app}} {{ns}}/{{trigger}}",
                r#"sum by (app, ns, trigger) (heddle_dead_letters{job=~"$job",app=~"$app",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Dead replies",
            PanelUnit::Count,
            "Replies at rest that could not go on.",
            &[query(
                "{{ns}}/{{trigger}}",
                r#"sum by (ns, trigger) (heddle_dead_replies{job=~"$job",ns=~"$ns"}) > 0"#,
            )],
        ),
        panel(
            "Oldest operation",
            PanelUnit::Seconds,
            "How long a platform waits for what it asked for through the Open Service Broker API.",
            &[query(
                "{{kind}}",
                r#"max by (kind) (heddle_operations_oldest_seconds{job=~"$job"}) > 0"#,
            )],
        ),
    ],
};

const HEARTBEATS: Dashboard = Dashboard {
    slug: "heartbeats",
    title: "Heartbeats and health",
    about: "Whether synthetic events arrive, and the verdicts that follow.",
    panels: &[
        panel(
            "Health of the mesh",
            PanelUnit::Health,
            "The verdict, and that of each plane.",
            &[query("{{plane}}", r#"heddle_health{job=~"$job",app=""}"#)],
        ),
        panel(
            "Health of Applications",
            PanelUnit::Health,
            "By namespace; `heddle health APP -n NS` says why.",
            &[query(
                "{{app}} {{ns}}",
                r#"heddle_health{job=~"$job",app!="",app=~"$app",ns=~"$ns",plane="all"}"#,
            )],
        ),
        panel(
            "Data plane of Applications",
            PanelUnit::Health,
            "What follows from heartbeats alone.",
            &[query(
                "{{app}} {{ns}}",
                r#"heddle_health{job=~"$job",app!="",app=~"$app",ns=~"$ns",plane="data"} > 1"#,
            )],
        ),
        panel(
            "Since the last arrival",
            PanelUnit::Seconds,
            "By Application and namespace. Three intervals, 30 seconds by default, are an outage.",
            &[query(
                "{{app}} {{ns}}",
                r#"heddle_heartbeat_age_seconds{job=~"$job",app!="",app=~"$app",ns=~"$ns"}"#,
            )],
        ),
        panel(
            "Canary: since the last arrival",
            PanelUnit::Seconds,
            "The way that belongs to nobody and always exists.",
            &[query(
                "canary",
                r#"heddle_heartbeat_age_seconds{job=~"$job",app=""}"#,
            )],
        ),
        panel(
            "How long they took",
            PanelUnit::Seconds,
            "From the door of the Application to the Broker of the namespace and out of it.",
            &[query(
                "{{app}} {{ns}}",
                r#"heddle_heartbeat_e2e_seconds{job=~"$job",app!="",app=~"$app",ns=~"$ns"}"#,
            )],
        ),
        panel(
            "Smoke tests that failed in a row",
            PanelUnit::Count,
            "Two are an alert. `heddle smoke` shows the step that fails.",
            &[query(
                "in a row",
                r#"heddle_smoke_failed_in_a_row{job=~"$job"}"#,
            )],
        ),
        panel(
            "How long the last smoke test took",
            PanelUnit::Seconds,
            "From the first step to the last, the removal of what it made included.",
            &[query(
                "all steps",
                r#"heddle_smoke_last_seconds{job=~"$job"}"#,
            )],
        ),
        panel(
            "Smoke tests",
            PanelUnit::Count,
            "Since the process began, by how they ended.",
            &[query(
                "{{result}}",
                r#"sum by (result) (heddle_smoke_runs_total{job=~"$job"}) > 0"#,
            )],
        ),
    ],
};
