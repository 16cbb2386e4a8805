//! A variant's own copies of its files and its executable, made once per run.

use super::Variant;
use crate::commands::{launch, lookup, scratch};
use crate::halt::Halt;
use crate::run_state::RunState;
use ensign_protocol::{Code, WarningCode};
use std::path::PathBuf;

impl Variant<'_> {
    /// The files that the variant's program runs with: their own inodes, and the layout that they had.
    pub(super) fn own_files(&mut self, run_state: &mut RunState) -> Result<(), Halt> {
        let Some(spec) = self.spec.files.as_ref().filter(|_| self.files.is_none()) else {
            return Ok(());
        };
        let failed = |code, text: String| Halt::failed(code, &self.spec.name, text);
        let copied = run_state.scratch.copy_files(self.tree, spec);
        let copy = copied.map_err(|error| {
            let code = Code::of_refusal(&error, Code::Request);
            failed(code, error.to_string())
        })?;
        if scratch::forbids_execution(&copy) {
            let [only] = spec.folders.as_slice() else {
                let text = "the scratch folder forbids execution; set TMPDIR to one that allows it";
                return Err(failed(Code::Request, text.into()));
            };
            let text = format!("{only} is used as it is: the scratch folder forbids execution");
            self.files = Some(PathBuf::from(only));
            run_state.warn(WarningCode::NotCopied, self.name(), text);
            return Ok(());
        }
        self.files = Some(copy);
        Ok(())
    }

    /// The file to execute: the variant's own copy where that is possible.
    pub(super) fn own_program(&mut self, run_state: &mut RunState) -> Result<PathBuf, Halt> {
        if let Some(program) = &self.program {
            return Ok(program.clone());
        }
        let original = launch::resolve(&self.spec.program, &self.names)?;
        let mut program = original.program.clone();
        let is_copy = (self.files.as_ref()).is_some_and(|files| program.starts_with(files));
        if self.spec.copy_program && !is_copy {
            match lookup::why_not_copied(&original.file)? {
                Some(reason) => self.warn_not_copied(run_state, reason),
                None => {
                    let copy = run_state
                        .scratch
                        .copy_executable(self.tree, &original.file)?;
                    if lookup::may_execute(&copy) {
                        program = copy;
                    } else {
                        self.warn_not_copied(run_state, "the scratch folder forbids execution");
                    }
                }
            }
        }
        self.program = Some(program.clone());
        Ok(program)
    }

    fn warn_not_copied(&self, run_state: &mut RunState, reason: &str) {
        let program = &self.spec.program.argv[0];
        let text = format!("{program} runs from the original file: {reason}");
        run_state.warn(WarningCode::NotCopied, self.name(), text);
    }
}
