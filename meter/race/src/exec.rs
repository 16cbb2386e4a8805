//! One command under the guardian, with limits and accounting.

use crate::activity::Observer;
use crate::commands::launch::{self, Keep, Launch, Names};
use crate::halt::Halt;
use crate::processes::freezer::Group;
use crate::run_state::RunState;
use ensign_protocol::records::{Role, Seen};
use ensign_protocol::request::Exec;
use ensign_protocol::WarningCode;

pub(crate) fn exec(run_state: &mut RunState, request: &Exec) -> (u64, Result<(), Halt>) {
    let result = run(run_state, request);
    let told = if matches!(result, Err(Halt::Interrupted)) {
        Ok(())
    } else {
        run_state.tell()
    };
    (u64::from(result.is_ok()), result.and(told))
}

fn run(run_state: &mut RunState, request: &Exec) -> Result<(), Halt> {
    let tree = run_state
        .process_trees
        .add_tree(false, &request.process.limits)?;
    let tmp = run_state.variant_tmp(tree)?;
    let names = Names {
        tmp: tmp.to_string_lossy().into_owned(),
        ..Names::default()
    };
    launch::resolve(&request.process, &names)?;
    let mut process = run_state.launch(Launch {
        spec: &request.process,
        names: &names,
        role: Role::Command,
        tree,
        group: Group::Main,
        program: None,
        keep: if request.keep_output {
            Keep::Everything
        } else {
            Keep::Errors
        },
        reads_output: false,
        extra_env: Vec::new(),
    })?;
    let mut observer = request.observe.then(Observer::default);
    let reason = run_state.await_observed_exit(&mut process, observer.as_mut())?;
    let cpu_wait_ns = run_state.process_trees.tree(tree).cpu_wait_ns(Group::Main);
    run_state.end_left_running(tree, Group::Main, None);
    for (pid, name) in run_state.process_trees.end_escaped() {
        let text = format!("{name} ({pid}) left the process tree and was ended");
        run_state.warn_of_ended(WarningCode::Escape, None, text, vec![name]);
    }
    if request.process.digest {
        process.stdout.finish();
    }
    let digest = process.stdout.digest().filter(|_| request.process.digest);
    let concluded = run_state.conclude(process, None, reason);
    if let Some(outcome) = run_state.outcomes.last_mut() {
        outcome.seen = Some(Seen {
            digest,
            cpu_wait_ns,
            activity: observer.map(|observer| observer.main),
        });
    }
    concluded
}
