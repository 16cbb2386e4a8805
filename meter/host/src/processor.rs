//! What the processor says of its features: registers of `cpuid`, and XCR0, which says whose
//! registers the operating system keeps.

use std::collections::BTreeMap;

/// Registers of features by leaf, subleaf and name, `7.0.ebx`, and `xcr0`; what is 0 is left out.
/// On other architectures there are none.
#[cfg(not(target_arch = "x86_64"))]
pub fn feature_registers() -> BTreeMap<String, u64> {
    BTreeMap::new()
}

/// Registers of features by leaf, subleaf and name, `7.0.ebx`, and `xcr0`; what is 0 is left out.
#[cfg(target_arch = "x86_64")]
pub fn feature_registers() -> BTreeMap<String, u64> {
    use std::arch::x86_64::{__cpuid_count, CpuidResult};

    const OSXSAVE: u32 = 1 << 27;
    // Others of these leaves are sizes, or differ from CPU to CPU.
    const FEATURES: [(u32, u32, &[&str]); 8] = [
        (1, 0, &["ecx", "edx"]),
        (0xd, 1, &["eax"]),
        (0x1e, 1, &["eax"]),
        (0x24, 0, &["ebx"]),
        (0x29, 0, &["ebx"]),
        (0x8000_0001, 0, &["ecx", "edx"]),
        (0x8000_0008, 0, &["ebx"]),
        (0x8000_0021, 0, &["eax"]),
    ];
    // Newer compilers hold it for safe.
    #[allow(unused_unsafe)]
    let ask = |leaf: u32, subleaf: u32| -> CpuidResult {
        // SAFETY: every x86-64 processor has the instruction.
        let last = unsafe { __cpuid_count(leaf & 0x8000_0000, 0) }.eax;
        let asked = if leaf <= last { leaf } else { return NONE };
        // SAFETY: as above; the leaf is there.
        unsafe { __cpuid_count(asked, subleaf) }
    };
    const NONE: CpuidResult = CpuidResult {
        eax: 0,
        ebx: 0,
        ecx: 0,
        edx: 0,
    };
    let mut asked: Vec<(u32, u32, &[&str])> = FEATURES.to_vec();
    asked.push((7, 0, &["ebx", "ecx", "edx"]));
    for subleaf in 1..=ask(7, 0).eax.min(31) {
        asked.push((7, subleaf, &["eax", "ebx", "ecx", "edx"]));
    }
    let mut found = BTreeMap::new();
    for (leaf, subleaf, names) in asked {
        let CpuidResult { eax, ebx, ecx, edx } = ask(leaf, subleaf);
        let registers = [("eax", eax), ("ebx", ebx), ("ecx", ecx), ("edx", edx)];
        for (name, value) in registers {
            if value != 0 && names.contains(&name) {
                found.insert(format!("{leaf:x}.{subleaf:x}.{name}"), value.into());
            }
        }
    }
    if ask(1, 0).ecx & OSXSAVE != 0 {
        // SAFETY: the operating system allows XGETBV, as the bit says.
        found.insert("xcr0".into(), unsafe { xcr0() });
    }
    found
}

/// # Safety
/// The operating system must have allowed XGETBV.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "xsave")]
unsafe fn xcr0() -> u64 {
    // SAFETY: the caller says so.
    unsafe { std::arch::x86_64::_xgetbv(0) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_processor_of_x86_64_has_sse2_and_says_so() {
        let found = super::feature_registers();
        let sse2 = found.get("1.0.edx").is_some_and(|edx| edx >> 26 & 1 == 1);
        assert_eq!(sse2, cfg!(target_arch = "x86_64"));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn it_says_what_the_standard_library_found() {
        let found = super::feature_registers();
        let has = |name, bit: u32| found.get(name).is_some_and(|bits| bits >> bit & 1 == 1);
        let avx = has("1.0.ecx", 28) && has("xcr0", 1) && has("xcr0", 2);
        assert_eq!(avx, std::is_x86_feature_detected!("avx"));
        assert_eq!(
            avx && has("7.0.ebx", 5),
            std::is_x86_feature_detected!("avx2")
        );
        assert_eq!(has("7.0.ebx", 8), std::is_x86_feature_detected!("bmi2"));
        assert_eq!(
            has("80000001.0.ecx", 5),
            std::is_x86_feature_detected!("lzcnt")
        );
    }
}
