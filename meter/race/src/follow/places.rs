//! What files a traced process means: mappings, descriptors, names.

use super::ptrace;
use crate::processes::procfs;
use ensign_host::path::lexically;
use ensign_protocol::records::Mapped;
use libc::pid_t;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

const DELETED: &str = " (deleted)";
/// Trees of the kernel's own: writing there is no writing of files.
const KERNEL: [&str; 2] = ["/proc/", "/sys/"];

/// Something executable in an address space.
pub(crate) enum Code {
    File(Mapped),
    /// Made at run time.
    Anonymous,
}

/// Addresses of executable memory, from `start` to before `end`, and where in its file it begins.
pub(crate) struct Region {
    pub start: u64,
    pub end: u64,
    pub offset: u64,
    pub code: Code,
}

/// What is mapped for execution, of addresses from `first` to before `last`.
pub(crate) fn executable(pid: pid_t, first: u64, last: u64) -> Vec<Code> {
    let inside = |region: &Region| region.end > first && region.start < last;
    let found = regions(pid).into_iter().filter(inside);
    found.map(|region| region.code).collect()
}

/// All that a process has mapped for execution; empty where the kernel does not tell.
pub(crate) fn regions(pid: pid_t) -> Vec<Region> {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    // The kernel tells them as they are called in our root, if the mounts are ours.
    let other_root = has_other_root(pid) && !has_our_mounts(pid);
    let text = String::from_utf8_lossy(&text);
    let mut found: Vec<Region> = text.lines().filter_map(region).collect();
    for each in &mut found {
        if let Code::File(file) = &mut each.code {
            file.other_root = other_root;
        }
    }
    found
}

/// `start-end rights offset device inode path`, of what is executable.
pub(crate) fn region(line: &str) -> Option<Region> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let mut fields = rest.splitn(5, ' ');
    if !fields.next()?.contains('x') {
        return None;
    }
    let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
    let device = fields.next()?;
    let inode: u64 = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or("").trim_start();
    let code = code(device, inode, path)?;
    Some(Region {
        start,
        end,
        offset,
        code,
    })
}

fn code(device: &str, inode: u64, path: &str) -> Option<Code> {
    if inode == 0 {
        let the_kernel_s = path.starts_with("[v") || path == "[uprobes]";
        return (!the_kernel_s).then_some(Code::Anonymous);
    }
    let deleted = path.ends_with(DELETED);
    Some(Code::File(Mapped {
        path: path.trim_end_matches(DELETED).replace("\\012", "\n"),
        device: device.into(),
        inode,
        deleted,
        other_root: false,
    }))
}

/// In another root directory names mean other files.
pub(crate) fn has_other_root(pid: pid_t) -> bool {
    let identity = |path: &str| fs::metadata(path).map(|data| (data.dev(), data.ino())).ok();
    let root = identity(&format!("/proc/{pid}/root/"));
    root.is_some() && root != identity("/")
}

fn has_our_mounts(pid: pid_t) -> bool {
    let mounts = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let own = mounts("self");
    own.is_some() && own == mounts(&pid.to_string())
}

pub(crate) fn program_of(pid: pid_t) -> String {
    let link = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    link.to_string_lossy().into_owned()
}

/// The file behind a descriptor, where it is one that another program may meet under that name.
pub(crate) fn opened(pid: pid_t, descriptor: i64) -> Option<String> {
    let link = format!("/proc/{pid}/fd/{descriptor}");
    let path = fs::read_link(&link).ok()?;
    let data = fs::metadata(&link).ok()?;
    let kind = data.file_type();
    let path = path.to_string_lossy().into_owned();
    let named = path.starts_with('/') && data.nlink() > 0 && !kind.is_char_device();
    (named && !is_the_kernel_s(&path)).then_some(path)
}

pub(crate) fn is_the_kernel_s(path: &str) -> bool {
    KERNEL.iter().any(|tree| path.starts_with(tree))
}

/// The file that a name in memory means; `folder` is a descriptor that it may be relative to.
pub(crate) fn named(pid: pid_t, folder: Option<i32>, address: u64) -> Option<String> {
    let bytes = ptrace::text(pid, address)?;
    let name = Path::new(OsStr::from_bytes(&bytes));
    let base = match folder {
        Some(descriptor) if descriptor >= 0 => format!("/proc/{pid}/fd/{descriptor}"),
        _ => format!("/proc/{pid}/cwd"),
    };
    let full = if name.is_absolute() {
        name.to_path_buf()
    } else {
        let base = fs::read_link(base).ok()?;
        if name.as_os_str().is_empty() {
            base
        } else {
            base.join(name)
        }
    };
    Some(settled(pid, &full).to_string_lossy().into_owned())
}

/// Without links in its folder; what it is itself may just be about to change.
fn settled(pid: pid_t, path: &Path) -> PathBuf {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_path_buf();
    };
    match fs::canonicalize(folder) {
        Ok(folder) if !has_other_root(pid) => folder.join(name),
        _ => lexically(path),
    }
}

/// The name of an address that a socket is bound to; None where others may have the same.
pub(crate) fn bound(pid: pid_t, address: u64, length: u64) -> Option<String> {
    const UNIX_NAME: usize = 2;
    let mut bytes = vec![0; length.clamp(2, 128) as usize];
    ptrace::read(pid, address, &mut bytes)?;
    let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
    match family {
        libc::AF_UNIX if bytes.len() > UNIX_NAME => unix_name(pid, &bytes[UNIX_NAME..]),
        // In a network of its own nobody else can have it.
        libc::AF_INET | libc::AF_INET6 if bytes.len() > 3 && !procfs::has_own_network(pid) => {
            let port = u16::from_be_bytes([bytes[2], bytes[3]]);
            (port != 0).then(|| format!("port {port}"))
        }
        _ => None,
    }
}

fn unix_name(pid: pid_t, name: &[u8]) -> Option<String> {
    if name[0] == 0 {
        let text = String::from_utf8_lossy(&name[1..]);
        return (!text.is_empty()).then(|| format!("socket @{text}"));
    }
    let end = name.iter().position(|&byte| byte == 0);
    let path = Path::new(OsStr::from_bytes(&name[..end.unwrap_or(name.len())]));
    let cwd = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    Some(settled(pid, &cwd.join(path)).to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(line: &str) -> Option<Mapped> {
        match region(line)?.code {
            Code::File(file) => Some(file),
            Code::Anonymous => None,
        }
    }

    #[test]
    fn lines_of_maps() {
        let line = "7f00-7f10 r-xp 00001000 fd:01 4711 /opt/a b (deleted)";
        let file = only(line).unwrap();
        assert_eq!((file.path.as_str(), file.deleted), ("/opt/a b", true));
        assert_eq!((file.device.as_str(), file.inode), ("fd:01", 4711));
        assert_eq!(only("7f00-7f10 r--p 00001000 fd:01 4711 /opt/a"), None);
        let region = region(line).unwrap();
        assert_eq!((region.start, region.end), (0x7f00, 0x7f10));
        assert_eq!(region.offset, 0x1000);
    }

    #[test]
    fn code_without_a_file() {
        let jit = "7f00-7f10 rwxp 00000000 00:00 0 ";
        let found = region(jit).map(|region| region.code);
        assert!(matches!(found, Some(Code::Anonymous)));
        let kernel = "7f00-7f10 r-xp 00000000 00:00 0    [vdso]";
        assert!(region(kernel).is_none());
    }

    #[test]
    fn names_without_links_to_follow() {
        assert_eq!(lexically(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
