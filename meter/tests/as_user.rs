//! `as-user`: another user without privileges. What needs root is tried as root only.

use std::collections::BTreeMap;
use std::process::{Command, Output};

const NOBODY: &str = "65534:65534";

fn as_user(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ensign-meter"))
        .arg("as-user")
        .args(arguments)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn is_root() -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::geteuid() == 0 }
}

#[test]
fn nothing_is_left_of_root() {
    if !is_root() {
        return;
    }
    let output = as_user(&[NOBODY, "--", "cat", "/proc/self/status"]);
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let status: BTreeMap<&str, Vec<&str>> = text
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.split_whitespace().collect()))
        .collect();
    for name in ["Uid", "Gid"] {
        assert_eq!(status[name], ["65534"; 4], "{name}");
    }
    assert_eq!(status["Groups"], [""; 0]);
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status[name], ["0000000000000000"], "{name}");
    }
    assert_eq!(status["NoNewPrivs"], ["1"]);
    assert_eq!(status["Umask"], ["0022"]);
}

/// What perl reads of a key: 6 bytes of it, or -1.
fn read_by(command: &mut Command, key: i64) -> String {
    const READ: u32 = 11;
    let call = libc::SYS_keyctl;
    let script = format!("$b = '-' x 6; print syscall({call}, {READ}, {key}, $b, 6)");
    let output = command.args(["perl", "-e", &script]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_same_user_has_no_keys_of_the_session() {
    const SESSION: libc::c_long = -3;
    let secret = "secret";
    // SAFETY: the strings end with a zero, and the secret is as long as said.
    let key = unsafe {
        let (kind, name) = (c"user".as_ptr(), c"ensign-test".as_ptr());
        let (data, length) = (secret.as_ptr(), secret.len());
        libc::syscall(libc::SYS_add_key, kind, name, data, length, SESSION)
    };
    if key < 0 {
        return; // no kernel without keyrings has keys to hide
    }
    assert_eq!(read_by(&mut Command::new("env"), key), "6");
    let mut same = Command::new(env!("CARGO_BIN_EXE_ensign-meter"));
    same.args(["as-user", "same", "--"]);
    assert_eq!(read_by(&mut same, key), "-1");
}

#[test]
fn the_status_is_that_of_the_command_or_says_why_there_is_none() {
    if !is_root() {
        let output = as_user(&[NOBODY, "--", "true"]);
        assert_eq!(output.status.code(), Some(125));
        assert!(said(&output).contains("cannot become user 65534:65534"));
        return;
    }
    let ends = |script| as_user(&[NOBODY, "--", "sh", "-c", script]).status.code();
    assert_eq!(ends("exit 7"), Some(7));
    // Signals are as a program expects them.
    assert_eq!(ends("kill -PIPE $$; exit 1"), None);
    let missing = as_user(&[NOBODY, "--", "/no-such-folder/program"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(said(&missing).contains("/no-such-folder/program"));
    let folder = as_user(&[NOBODY, "--", "/"]);
    assert_eq!(folder.status.code(), Some(126));
}

#[test]
fn root_is_no_other_user() {
    for wrong in [
        "0:0",
        "0:65534",
        "65534:0",
        "4294967295:65534",
        "nobody:nogroup",
    ] {
        let output = as_user(&[wrong, "--", "true"]);
        assert_eq!(output.status.code(), Some(125), "{wrong}");
        assert_eq!(said(&output).lines().count(), 1);
        assert!(said(&output).contains("is not UID:GID"), "{wrong}");
    }
}

#[test]
fn a_private_file_of_root_stays_private() {
    if !is_root() {
        return;
    }
    let file = std::env::temp_dir().join(format!("meter-as-user-{}", std::process::id()));
    std::fs::write(&file, "private").unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let output = as_user(&[NOBODY, "--", "cat", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    assert!(!output.status.success());
    assert_eq!(output.stdout, b"");
}
