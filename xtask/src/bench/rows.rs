//! Every row of the report except those of growth (`curves`): its figure, its baseline and its promised limit.
//!
//! A figure's name is `part.name`: the part of `crates/bench` or the script of `e2e/bench` that measures it, and its
//! name there.

/// The parts of `crates/bench`.
pub(super) const SERVER: [&str; 7] = [
    "start",
    "streams",
    "sessions",
    "growth",
    "updates",
    "gateway",
    "agent-store",
];

pub(super) struct Table {
    pub(super) name: &'static str,
    /// Title of the baseline column.
    pub(super) baseline: &'static str,
    pub(super) rows: &'static [Row],
}

pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) ours: &'static str,
    /// The baseline figure; empty for none.
    pub(super) baseline: &'static str,
    /// Further baselines, with a label.
    pub(super) others: &'static [(&'static str, &'static str)],
    pub(super) better: Better,
    pub(super) promise: Promise,
}

#[derive(Clone, Copy)]
pub(super) enum Better {
    Less,
    More,
}

#[derive(Clone, Copy)]
pub(super) enum Promise {
    None,
    /// At most this value.
    Most(f64),
    /// At least this share of the baseline.
    Share(f64),
    /// At most this many times the baseline.
    Times(f64),
}

const fn row(
    name: &'static str,
    unit: &'static str,
    ours: &'static str,
    baseline: &'static str,
    promise: Promise,
) -> Row {
    let (others, better) = (&[], Better::Less);
    Row {
        name,
        unit,
        ours,
        baseline,
        others,
        better,
        promise,
    }
}

impl Row {
    const fn more(mut self) -> Self {
        self.better = Better::More;
        self
    }

    const fn and(mut self, others: &'static [(&'static str, &'static str)]) -> Self {
        self.others = others;
        self
    }
}

use Promise::{Most, None, Share, Times};

// Formatted as a table.
#[rustfmt::skip]
pub(super) const TABLES: &[Table] = &[
    Table {
        name: "STREAMS",
        baseline: "minimal relay, typed",
        rows: &[
            row("flood, one session", "thousand chunks/s", "streams.ours_flood", "streams.relay_typed_flood", Share(0.5)).more().and(&[
                ("relay, unparsed lines", "streams.relay_lines_flood"),
                ("relay, joined text", "streams.relay_coalesced_flood"),
                ("relay with the protocol crate", "streams.relay_crate_flood"),
                ("Node bridge", "streams.node_flood"),
            ]),
            row("flood, ten sessions", "thousand chunks/s", "streams.ours_flood_10", "streams.relay_typed_flood", Share(0.5)).more(),
            row("flood, a hundred sessions", "thousand chunks/s", "streams.ours_flood_100", "streams.relay_typed_flood", Share(0.5)).more(),
            row("processor time, 100,000 chunks", "s", "streams.ours_cpu", "streams.relay_typed_cpu", Times(2.0)).and(&[
                ("relay with the protocol crate", "streams.relay_crate_cpu"),
                ("Node bridge", "streams.node_cpu"),
            ]),
            row("system calls, 100,000 chunks", "calls", "streams.ours_calls", "streams.relay_typed_calls", None).and(&[
                ("relay, unparsed lines", "streams.relay_lines_calls"),
                ("relay, joined text", "streams.relay_coalesced_calls"),
                ("relay with the protocol crate", "streams.relay_crate_calls"),
                ("Node bridge", "streams.node_calls"),
            ]),
            row("delay at 500/s, p50", "us", "streams.ours_delay_500_p50", "streams.relay_typed_delay_500_p50", Times(2.0)).and(&[("Node bridge", "streams.node_delay_500_p50")]),
            row("delay at 500/s, p99", "us", "streams.ours_delay_500_p99", "streams.relay_typed_delay_500_p99", Times(2.0)).and(&[("Node bridge", "streams.node_delay_500_p99")]),
            row("delay at 5,000/s, p50", "us", "streams.ours_delay_5000_p50", "streams.relay_typed_delay_5000_p50", None),
            row("delay at 5,000/s, p99", "us", "streams.ours_delay_5000_p99", "streams.relay_typed_delay_5000_p99", None),
            row("message to first chunk", "ms", "streams.ours_first", "streams.relay_typed_first", None),
            row("the agent's pipe to our queue", "thousand/s", "updates.updates", "updates.updates_typed", Share(0.5)).more().and(&[("the protocol crate", "updates.updates_crate")]),
        ],
    },
    Table {
        name: "START AND MEMORY",
        baseline: "minimal server",
        rows: &[
            row("ready, empty store", "ms", "start.ready_0", "start.bare_ready", Most(30.0)),
            row("ready, 1,000 sessions", "ms", "start.ready_1000", "start.bare_ready", None),
            row("ready, 10,000 sessions", "ms", "start.ready_10000", "start.bare_ready", Most(150.0)),
            row("ready, 100,000 sessions", "ms", "start.ready_100000", "start.bare_ready", None),
            row("ready, 100 long transcripts", "ms", "start.ready_100_long", "start.bare_ready", None),
            row("memory idle, empty store", "MiB", "start.memory_0", "start.bare_memory", Most(12.0)),
            row("memory idle, 1,000 sessions", "MiB", "start.memory_1000", "start.bare_memory", None),
            row("memory idle, 10,000 sessions", "MiB", "start.memory_10000", "start.bare_memory", None),
            row("memory idle, 100,000 sessions", "MiB", "start.memory_100000", "start.bare_memory", None),
            row("memory, 100 sessions open", "MiB", "sessions.memory_100_open", "", Most(50.0)).and(&[("Node bridge, one session", "sessions.node_memory")]),
            row("memory for one more open session", "KiB", "sessions.memory_session", "", None),
            row("memory for one more subscriber", "KiB", "sessions.memory_subscriber", "", None),
        ],
    },
    Table {
        name: "SESSIONS",
        baseline: "file read, parsed, written",
        rows: &[
            row("session created", "ms", "sessions.create", "", None).and(&[("the agent alone", "sessions.agent_create")]),
            row("new session opened", "ms", "sessions.open", "", None).and(&[("a request rejected", "sessions.plain_open")]),
            row("2,000 entries to the socket", "ms", "sessions.history_2000", "sessions.plain_history_2000", None),
            row("20,000 entries to the socket", "ms", "sessions.history_20000", "sessions.plain_history_20000", None),
            row("list of 10,000", "ms", "sessions.list", "sessions.plain_list", None),
        ],
    },
    Table {
        name: "GATEWAY, response time",
        baseline: "a server without a crowd",
        rows: &[
            row("no crowd, p50", "us", "gateway.quiet_p50", "gateway.elsewhere_quiet_p50", None),
            row("crowd connecting, p50", "us", "gateway.arriving_p50", "gateway.elsewhere_arriving_p50", None),
            row("crowd connecting, p99", "us", "gateway.arriving_p99", "gateway.elsewhere_arriving_p99", Times(3.0)),
            row("crowd connected, p50", "us", "gateway.standing_p50", "gateway.elsewhere_standing_p50", None),
            row("crowd connected, p99", "us", "gateway.standing_p99", "gateway.elsewhere_standing_p99", Times(3.0)),
        ],
    },
    Table {
        name: "BUILT-IN AGENT, 10,000 sessions",
        baseline: "100 sessions",
        rows: &[
            row("new session", "us", "agent-store.new_10000", "agent-store.new_100", None),
            row("newest sessions listed", "us", "agent-store.list_10000", "agent-store.list_100", Times(2.0)),
            row("sessions of a folder listed", "us", "agent-store.list_of_folder_10000", "agent-store.list_of_folder_100", Times(2.0)),
            row("session loaded", "us", "agent-store.load_10000", "agent-store.load_100", Times(2.0)),
        ],
    },
    Table {
        name: "PAGE LOAD",
        baseline: "a bare page",
        rows: &[
            row("first load, on the wire", "KB", "first-load.kb", "first-load.bare_kb", Most(100.0)),
            row("first load, requests", "", "first-load.requests", "first-load.bare_requests", None),
            row("first paint", "ms", "first-load.paint", "first-load.bare_paint", Most(150.0)),
            row("until the user can type", "ms", "first-load.interactive", "first-load.bare_interactive", None),
            row("  longest task", "ms", "first-load.longest", "first-load.bare_longest", None),
            row("  scripts' memory", "MB", "first-load.heap", "first-load.bare_heap", None),
        ],
    },
    Table {
        name: "TEXT AS HTML, 1,000 mixed entries",
        baseline: "marked, DOMPurify, highlight.js",
        rows: &[
            row("page, main thread", "ms", "markdown.insert", "markdown.script", None),
            row("server", "ms", "markdown.render", "", None),
            row("chunk late in 50 KB", "us", "markdown.growing_last", "markdown.growing_first", Times(2.0)).and(&[("page, rendering all of it again", "markdown.again_last")]),
        ],
    },
    Table {
        name: "WORKSPACE IN CHROMIUM",
        baseline: "plain page with everything",
        rows: &[
            row("2,000 entries, open to visible", "ms", "web.open_2000_visible", "web.naive_open_2000_visible", Most(100.0)),
            row("  longest task", "ms", "web.open_2000_longest", "web.naive_open_2000_longest", Most(50.0)),
            row("  task time beyond 50 ms", "ms", "web.open_2000_blocking", "web.naive_open_2000_blocking", None),
            row("  processor time", "ms", "web.open_2000_processor", "web.naive_open_2000_processor", None),
            row("  scripts' memory", "MB", "web.open_2000_heap", "web.naive_open_2000_heap", None),
            row("20,000 entries, open to visible", "ms", "web.open_20000_visible", "web.naive_open_20000_visible", Most(200.0)),
            row("  longest task", "ms", "web.open_20000_longest", "web.naive_open_20000_longest", Most(50.0)),
            row("  task time beyond 50 ms", "ms", "web.open_20000_blocking", "web.naive_open_20000_blocking", None),
            row("  processor time", "ms", "web.open_20000_processor", "web.naive_open_20000_processor", None),
            row("  scripts' memory", "MB", "web.open_20000_heap", "web.naive_open_20000_heap", None),
            row("  frame while scrolling", "ms", "web.scroll_frame", "web.naive_scroll_frame", Most(17.5)),
            row("  frames dropped while scrolling", "%", "web.scroll_dropped", "web.naive_scroll_dropped", None),
            row("  longest task while scrolling", "ms", "web.scroll_longest", "web.naive_scroll_longest", None),
            row("  task time beyond 50 ms while scrolling", "ms", "web.scroll_blocking", "web.naive_scroll_blocking", None),
            row("  scripts' memory after scrolling", "MB", "web.scroll_heap", "web.naive_scroll_heap", None),
            row("50 KB in 2,500 chunks, processor time", "ms", "web.stream_processor", "web.naive_stream_processor", None),
            row("  longest task", "ms", "web.stream_longest", "web.naive_stream_longest", Most(50.0)),
            row("  task time beyond 50 ms", "ms", "web.stream_blocking", "web.naive_stream_blocking", None),
            row("  last third over first third", "", "web.stream_growth", "web.naive_stream_growth", Most(1.5)),
            row("  frames dropped", "%", "web.stream_dropped", "web.naive_stream_dropped", None),
            row("  scripts' memory", "MB", "web.stream_heap", "web.naive_stream_heap", None),
            row("ten sessions streaming, processor time", "ms", "web.ten_processor", "web.naive_ten_processor", None),
            row("  longest task", "ms", "web.ten_longest", "web.naive_ten_longest", Most(50.0)),
            row("  task time beyond 50 ms", "ms", "web.ten_blocking", "web.naive_ten_blocking", None),
            row("  last third over first third", "", "web.ten_growth", "web.naive_ten_growth", Most(1.5)),
            row("  frames dropped", "%", "web.ten_dropped", "web.naive_ten_dropped", None),
            row("  scripts' memory", "MB", "web.ten_heap", "web.naive_ten_heap", None),
            row("30 tabs, load to visible", "ms", "web.tabs_visible", "web.naive_tabs_visible", None),
            row("  longest task", "ms", "web.tabs_longest", "web.naive_tabs_longest", None),
            row("  task time beyond 50 ms", "ms", "web.tabs_blocking", "web.naive_tabs_blocking", None),
            row("  processor time", "ms", "web.tabs_processor", "web.naive_tabs_processor", None),
            row("  scripts' memory", "MB", "web.tabs_heap", "web.naive_tabs_heap", None),
            row("  scripts' memory, all shown", "MB", "web.tabs_seen_heap", "web.naive_tabs_seen_heap", None),
            row("switch, two sessions of 20,000", "ms", "web.switch", "web.naive_switch", Most(16.0)),
            row("  longest task", "ms", "web.switch_longest", "web.naive_switch_longest", None),
            row("  task time beyond 50 ms", "ms", "web.switch_blocking", "web.naive_switch_blocking", None),
            row("  scripts' memory", "MB", "web.switch_heap", "", None),
            row("50,000 sessions, first paint", "ms", "web.sidebar_paint", "web.naive_sidebar_paint", Most(200.0)),
            row("  load to rows", "ms", "web.sidebar_visible", "web.naive_sidebar_visible", None),
            row("  longest task", "ms", "web.sidebar_longest", "web.naive_sidebar_longest", None),
            row("  task time beyond 50 ms", "ms", "web.sidebar_blocking", "web.naive_sidebar_blocking", None),
            row("  scripts' memory", "MB", "web.sidebar_heap", "web.naive_sidebar_heap", None),
            row("  frame while scrolling", "ms", "web.sidebar_frame", "web.naive_sidebar_frame", Most(17.5)),
            row("  frames dropped while scrolling", "%", "web.sidebar_dropped", "web.naive_sidebar_dropped", None),
            row("  longest task while scrolling", "ms", "web.sidebar_scroll_longest", "web.naive_sidebar_scroll_longest", None),
            row("server restart, port to resync", "ms", "web.reconnect", "web.naive_reconnect", Most(300.0)),
        ],
    },
];
