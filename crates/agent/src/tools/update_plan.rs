//! `update_plan`: shows the model's plan to the user as a list of steps with their status.

use agent_client_protocol_schema::v1 as acp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Offered, refuse, schema};
use crate::turn::{Stop, Turn};
use crate::turn_output::Outcome;

pub(crate) const NAME: &str = "update_plan";
pub(crate) const SHOWN: &str = "The plan is shown.";
const ENTRIES_MAX: usize = 50;

#[derive(Deserialize)]
struct Input {
    entries: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    content: String,
    status: acp::PlanEntryStatus,
}

pub(super) fn offered() -> Offered {
    let step = json!({
        "type": "object",
        "properties": {
            "content": {"type": "string"},
            "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
        },
        "required": ["content", "status"],
        "additionalProperties": false,
    });
    Offered {
        name: NAME,
        description: "Shows the user a plan of several steps, or its new state. Send the whole list each time.",
        schema: schema(
            json!({"entries": {"type": "array", "items": step}}),
            &["entries"],
        ),
    }
}

pub(super) async fn run(turn: &mut Turn, input: Value) -> Result<Outcome, Stop> {
    match serde_json::from_value::<Input>(input.clone()) {
        Ok(parsed) => {
            let entry = |step: Step| {
                acp::PlanEntry::new(step.content, acp::PlanEntryPriority::Medium, step.status)
            };
            let entries = parsed.entries.into_iter().take(ENTRIES_MAX).map(entry);
            turn.output.show_plan(entries.collect()).await?;
            Ok(Outcome::done(SHOWN))
        }
        Err(error) => {
            let outcome = Outcome::failed(format!("Invalid input: {error}"));
            refuse(turn, NAME, acp::ToolKind::Think, input, &outcome).await?;
            Ok(outcome)
        }
    }
}
