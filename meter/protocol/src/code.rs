//! What kinds of errors there are.

/// What a reader of the records finds in `code` of an `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    System,
}

impl Code {
    pub fn name(self) -> &'static str {
        match self {
            Code::Request => "request",
            Code::NotFound => "not-found",
            Code::NotExecutable => "not-executable",
            Code::Failed => "failed",
            Code::Crashed => "crashed",
            Code::Deadline => "deadline",
            Code::NotReady => "not-ready",
            Code::PortInUse => "port-in-use",
            Code::LoadFailed => "load-failed",
            Code::OperationsUnknown => "operations-unknown",
            Code::Reply => "reply",
            Code::System => "system",
        }
    }

    /// 2: the request cannot be carried out as it stands; 3: a command failed; 5: the meter did.
    pub fn exit_status(self) -> i32 {
        match self {
            Code::Request | Code::NotFound | Code::NotExecutable | Code::PortInUse => 2,
            Code::System => 5,
            _ => 3,
        }
    }
}
