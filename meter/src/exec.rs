//! One command under the guardian, with limits and accounting.

use crate::activity::Observer;
use crate::freezer::Group;
use crate::halt::Halt;
use crate::launch::{self, Keep, Launch, Names};
use crate::records::{Role, Seen};
use crate::request::Exec;
use crate::stage::Stage;

pub fn exec(stage: &mut Stage, request: &Exec) -> (u64, Result<(), Halt>) {
    let result = run(stage, request);
    let told = if matches!(result, Err(Halt::Interrupted)) {
        Ok(())
    } else {
        stage.tell()
    };
    (u64::from(result.is_ok()), result.and(told))
}

fn run(stage: &mut Stage, request: &Exec) -> Result<(), Halt> {
    let tree = stage.forest.plant(false)?;
    let tmp = stage.scratch.arm_tmp(0, tree)?;
    let names = Names {
        tmp: tmp.to_string_lossy().into_owned(),
        ..Names::default()
    };
    launch::resolve(&request.process, &names)?;
    let mut process = stage.launch(Launch {
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
    let reason = stage.await_observed_exit(&mut process, observer.as_mut())?;
    let cpu_wait_ns = stage.forest.tree(tree).cpu_wait_ns(Group::Main);
    stage.end_left_running(tree, Group::Main, None);
    for name in stage.forest.end_escaped() {
        stage.warn(
            "escape",
            None,
            format!("{name} left the process tree and was ended"),
        );
    }
    if request.process.digest {
        process.stdout.finish();
    }
    let digest = process.stdout.digest().filter(|_| request.process.digest);
    let concluded = stage.conclude(process, None, reason);
    if let Some(outcome) = stage.outcomes.last_mut() {
        outcome.seen = Some(Seen {
            digest,
            cpu_wait_ns,
            activity: observer.map(|observer| observer.main),
        });
    }
    concluded
}
