//! What kinds of errors and warnings there are.

use schemars::JsonSchema;
use serde::Serialize;

/// What a reader of the records finds in `code` of an `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    Request,
    NotFound,
    NotExecutable,
    Failed,
    Crashed,
    Deadline,
    NotReady,
    PortInUse,
    LoadFailed,
    OperationsUnknown,
    Reply,
    /// A limit of memory, of processes, or of what is written.
    Limit,
    System,
}

impl Code {
    /// 2: the request cannot be carried out as it stands; 3: a command failed; 5: the meter did.
    pub fn exit_status(self) -> i32 {
        match self {
            Code::Request | Code::NotFound | Code::NotExecutable | Code::PortInUse => 2,
            Code::System => 5,
            _ => 3,
        }
    }
}

/// What a reader of the records finds in `code` of a `warning`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningCode {
    /// A program or its files run from the original.
    NotCopied,
    /// A process left its tree.
    Escape,
    /// Background processes were ended.
    LeftRunning,
    /// A stop took long: another process had the CPU.
    Overshoot,
    LoadBottleneck,
    /// The variant fills no longer.
    FillerFailed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_written_with_hyphens() {
        let written = |code| serde_json::to_value(code).unwrap();
        assert_eq!(written(Code::NotFound), "not-found");
        assert_eq!(written(Code::OperationsUnknown), "operations-unknown");
        assert_eq!(
            serde_json::to_value(WarningCode::LeftRunning).unwrap(),
            "left-running"
        );
    }
}
