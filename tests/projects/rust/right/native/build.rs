use std::{env, process::Command};

fn main() {
    let out = env::var("OUT_DIR").unwrap();
    let compiled = Command::new("cc")
        .args(["-O2", "-g", "-c", "c/fast.c", "-o"])
        .arg(format!("{out}/fast.o"))
        .status();
    assert!(compiled.unwrap().success());
    let archived = Command::new("ar")
        .args(["crs", &format!("{out}/libfast.a"), &format!("{out}/fast.o")])
        .status();
    assert!(archived.unwrap().success());
    println!("cargo:rustc-link-search=native={out}");
    println!("cargo:rustc-link-lib=static=fast");
}
