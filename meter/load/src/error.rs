//! Why a drive stops before its end.

use ensign_host::wait;
use ensign_protocol::Code;
use std::io;

#[derive(Debug)]
pub enum DriveError {
    /// A signal, or the caller is gone.
    Interrupted,
    Failed {
        code: Code,
        text: String,
    },
}

impl DriveError {
    pub fn reply(text: impl Into<String>) -> DriveError {
        DriveError::failed(Code::Reply, text)
    }

    pub fn failed(code: Code, text: impl Into<String>) -> DriveError {
        let text = text.into();
        DriveError::Failed { code, text }
    }
}

impl From<io::Error> for DriveError {
    fn from(error: io::Error) -> DriveError {
        DriveError::failed(Code::System, error.to_string())
    }
}

impl From<wait::Error> for DriveError {
    fn from(error: wait::Error) -> DriveError {
        match error {
            wait::Error::Interrupted => DriveError::Interrupted,
            wait::Error::System(error) => error.into(),
        }
    }
}
