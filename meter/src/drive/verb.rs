//! `ensign-meter drive`: drives a server that already runs.

use super::driver::Driver;
use super::latency::Summary;
use super::spec::Drive;
use crate::halt::Halt;
use crate::records::Record;
use crate::run_state::RunState;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

#[derive(Deserialize, Debug)]
pub struct DriveRequest {
    pub schema: u64,
    #[serde(default)]
    pub hold: bool,
    pub address: SocketAddr,
    pub drive: Drive,
    #[serde(default)]
    pub cpus: Option<Vec<usize>>,
}

/// The record of a drive that is complete.
#[derive(Serialize)]
pub struct DriveTotal {
    pub operations: u64,
    pub wall_ns: u64,
    pub load_cpu_ns: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub latency_ns: Option<Summary>,
}

impl DriveRequest {
    pub fn check(&self) -> Result<(), String> {
        if !self.address.ip().is_loopback() {
            let address = self.address;
            return Err(format!(
                "`address` {address} is not of this machine (loopback)"
            ));
        }
        if self.cpus.as_ref().is_some_and(Vec::is_empty) {
            return Err("`cpus` is empty".into());
        }
        self.drive
            .check()
            .map_err(|text| format!("`drive`: {text}"))
    }
}

/// Gives the number of completed drives beside the result.
pub fn drive(run_state: &mut RunState, request: &DriveRequest) -> (u64, Result<(), Halt>) {
    let result = run(run_state, request);
    (u64::from(result.is_ok()), result)
}

fn run(run_state: &mut RunState, request: &DriveRequest) -> Result<(), Halt> {
    let cpus = request.cpus.as_deref();
    let driven = Driver::connect(&request.drive, request.address, cpus, &run_state.waiter)
        .and_then(|mut driver| Ok((driver.run(None)?, driver.report())));
    let (burst, report) = driven.map_err(|error| error.halt(""))?;
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
