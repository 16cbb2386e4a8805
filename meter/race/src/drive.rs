//! `ensign-meter drive`: drives a server that already runs.

use crate::halt::Halt;
use crate::run_state::RunState;
use ensign_load::Driver;
use ensign_protocol::records::{DriveTotal, Record};
use ensign_protocol::request::DriveRequest;

/// Gives the number of completed drives beside the result.
pub(crate) fn drive(run_state: &mut RunState, request: &DriveRequest) -> (u64, Result<(), Halt>) {
    let result = run(run_state, request);
    (u64::from(result.is_ok()), result)
}

fn run(run_state: &mut RunState, request: &DriveRequest) -> Result<(), Halt> {
    let cpus = request.cpus.as_deref();
    let driven = Driver::connect(&request.drive, request.address, cpus, &run_state.waiter)
        .and_then(|mut driver| Ok((driver.run(None, None)?, driver.report())));
    let (burst, report) = driven.map_err(|error| Halt::of_drive(error, ""))?;
    let total = DriveTotal {
        operations: report.operations,
        wall_ns: burst.wall_ns,
        load_cpu_ns: burst.load_cpu_ns,
        bytes_sent: report.bytes_sent,
        bytes_received: report.bytes_received,
        latency_ns: report.latency_ns,
    };
    run_state.out.put(&run_state.waiter, &Record::Drive(total))
}
