//! Command lines that nobody recorded, read as if they had been.

use crate::call::{self, Tool};
use crate::line::Line;
use serde::{Deserialize, Serialize};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    tool: Tool,
    arguments: Vec<String>,
}

#[derive(Serialize)]
struct Answer {
    line: Option<Line>,
    /// Files that the call would write, as far as its arguments tell.
    outputs: Vec<String>,
}

/// The answer to one question, both as JSON.
pub fn parsed(question: &str) -> Result<String, String> {
    let asked: Question = serde_json::from_str(question).map_err(|error| error.to_string())?;
    let line = Line::read(asked.tool, &asked.arguments);
    let answer = Answer {
        outputs: call::outputs(asked.tool, &asked.arguments, &line),
        line: asked.tool.has_line().then_some(line),
    };
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}
