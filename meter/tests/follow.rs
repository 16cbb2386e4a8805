//! In front of a program: what is seen of it, and that it does not notice.

mod common;

use common::{await_that, signal_to, Place};
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

struct Followed {
    status: ExitStatus,
    output: String,
    seen: Value,
}

impl Followed {
    fn has_mapped(&self, name: &str) -> bool {
        let mapped = self.seen["mapped"].as_array().unwrap();
        mapped
            .iter()
            .any(|file| file["path"].as_str().unwrap().ends_with(name))
    }

    fn ways(&self, name: &str) -> Vec<&str> {
        let written = self.seen["written"].as_array().unwrap();
        let found = written
            .iter()
            .find(|file| file["path"].as_str().unwrap().ends_with(name));
        found.map_or(Vec::new(), |file| {
            let ways = file["ways"].as_array().unwrap();
            ways.iter().map(|way| way.as_str().unwrap()).collect()
        })
    }
}

fn command(place: &Place, options: &[&str], argv: &[&str]) -> Command {
    let mut command = common::meter();
    command
        .args(["follow", "--log", "seen.json"])
        .args(options)
        .arg("--")
        .args(argv)
        .current_dir(&place.dir)
        .stdin(Stdio::null());
    command
}

fn follow(place: &Place, options: &[&str], argv: &[&str]) -> Followed {
    let output = command(place, options, argv).output().unwrap();
    Followed {
        status: output.status,
        output: String::from_utf8(output.stdout).unwrap(),
        seen: serde_json::from_str(&place.read("seen.json")).unwrap_or(Value::Null),
    }
}

fn compile(place: &Place, name: &str, source: &str, options: &[&str]) {
    let file = place.dir.join(format!("{name}.c"));
    fs::write(&file, source).unwrap();
    let status = Command::new("cc")
        .arg("-o")
        .arg(place.dir.join(name))
        .arg(&file)
        .args(options)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn children_and_what_they_write_are_seen_and_the_status_is_the_program_s() {
    let place = Place::new();
    let script = "echo a > made; echo b >> log; (cat made > /dev/null); mv made moved; \
        mkfifo pipe; rm pipe; flock log true; exit 3";
    let followed = follow(&place, &[], &["sh", "-c", script]);
    assert_eq!(followed.status.code(), Some(3));
    let seen = &followed.seen;
    assert_eq!(seen["complete"], true);
    assert_eq!(seen["exit"], 3);
    assert_eq!(seen["not_judged"], serde_json::json!([]));
    assert!(followed.has_mapped("/cat"));
    assert!(followed.has_mapped("/mv"));
    assert_eq!(followed.ways("/made"), ["opened"]);
    assert_eq!(followed.ways("/log"), ["opened", "appended", "locked"]);
    assert_eq!(followed.ways("/moved"), ["named"]);
    assert_eq!(followed.ways("/pipe"), ["named", "removed"]);
    assert!(followed.ways("/dev/null").is_empty());
    let read: Vec<&str> = seen["read"]
        .as_array()
        .unwrap()
        .iter()
        .map(|path| path.as_str().unwrap())
        .collect();
    let made = place.dir.join("made").canonicalize();
    assert!(made.is_err(), "it was renamed");
    assert!(read.iter().any(|path| path.ends_with("/made")));
    assert!(!read
        .iter()
        .any(|path| path.starts_with("/proc") || path.ends_with("/log")));
    assert_eq!(seen["read_in_part"], false);
    assert!(seen["processes"].as_u64().unwrap() >= 5);
}

#[test]
fn a_script_and_its_interpreter_are_both_named() {
    let place = Place::new();
    let script = place.dir.join("script");
    fs::write(&script, "#!/bin/sh\necho said\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).unwrap();
    let followed = follow(&place, &[], &["./script"]);
    assert_eq!(followed.output, "said\n");
    let program = &followed.seen["programs"][0];
    assert!(program["path"].as_str().unwrap().ends_with("/script"));
    assert_ne!(program["path"], program["executable"]);
}

#[test]
fn a_library_is_seen_that_is_closed_again_in_a_child_that_is_gone() {
    let place = Place::new();
    compile(
        &place,
        "library.so",
        "int f(void) { return 5; }",
        &["-shared", "-fPIC"],
    );
    let main = r#"
        #include <dlfcn.h>
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            int status;
            if (fork() == 0) {
                void *library = dlopen("./library.so", RTLD_NOW);
                int (*f)(void) = (int (*)(void))dlsym(library, "f");
                int result = f();
                dlclose(library);
                _exit(result);
            }
            wait(&status);
            return WEXITSTATUS(status);
        }"#;
    compile(&place, "main", main, &["-ldl"]);
    let followed = follow(&place, &[], &["./main"]);
    assert_eq!(followed.status.code(), Some(5));
    assert!(followed.has_mapped("/library.so"));
    assert!(followed.has_mapped("/main"));
}

#[test]
fn static_programs_threads_and_an_exec_by_a_thread() {
    let place = Place::new();
    let main = r#"
        #include <pthread.h>
        #include <unistd.h>
        static pthread_barrier_t all;
        static void *meet(void *end) {
            pthread_barrier_wait(&all);
            if (end) execl("./other", "other", (char *)0);
            pause();
            return 0;
        }
        int main(void) {
            pthread_t threads[3];
            pthread_barrier_init(&all, 0, 3);
            for (int i = 0; i < 3; i++)
                pthread_create(&threads[i], 0, meet, i == 2 ? (void *)1 : (void *)0);
            pthread_join(threads[0], 0);
        }"#;
    compile(&place, "main", main, &["-static", "-pthread"]);
    compile(
        &place,
        "other",
        "int main(void) { return 9; }",
        &["-static"],
    );
    let followed = follow(&place, &[], &["./main"]);
    assert_eq!(followed.status.code(), Some(9));
    assert_eq!(followed.seen["threads"], 4);
    assert_eq!(followed.seen["processes"], 1);
    assert!(followed.has_mapped("/main"));
    assert!(followed.has_mapped("/other"));
}

#[test]
fn it_dies_of_the_signal_that_the_program_dies_of() {
    let place = Place::new();
    let followed = follow(&place, &[], &["sh", "-c", "kill -USR1 $$"]);
    assert_eq!(followed.status.signal(), Some(libc::SIGUSR1));
    assert_eq!(followed.seen["signal"], libc::SIGUSR1);
}

#[test]
fn a_signal_reaches_the_program_once() {
    let place = Place::new();
    let script = "trap 'echo heard >> heard' TERM; echo > ready; \
        while [ ! -e heard ]; do sleep 0.01; done; exit 4";
    let mut child = command(&place, &[], &["sh", "-c", script]).spawn().unwrap();
    await_that("it is ready", || place.dir.join("ready").exists());
    signal_to(child.id() as i32, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert_eq!(place.read("heard"), "heard\n");
}

#[test]
fn a_program_that_is_killed_leaves_what_was_seen_until_it_was_asked_to_stop() {
    let place = Place::new();
    let script = "trap '' TERM; echo > ready; while :; do sleep 0.01; done";
    let mut child = command(&place, &[], &["sh", "-c", script]).spawn().unwrap();
    await_that("it is ready", || place.dir.join("ready").exists());
    signal_to(child.id() as i32, libc::SIGTERM);
    await_that("it is told", || place.dir.join("seen.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let seen: Value = serde_json::from_str(&place.read("seen.json")).unwrap();
    assert_eq!(seen["complete"], false);
    assert_ne!(seen["mapped"], serde_json::json!([]));
}

#[test]
fn it_stops_and_goes_on_as_it_is_told() {
    let place = Place::new();
    let script = "(while kill -CONT $$; do sleep 0.01; done) & kill -STOP $$; kill $!; exit 6";
    let followed = follow(&place, &[], &["sh", "-c", script]);
    assert_eq!(followed.status.code(), Some(6));
}

#[test]
fn clocks_of_cpu_time_are_counted_and_run_faster_if_asked() {
    let place = Place::new();
    // The kernel's own usage in /proc is the truth; a tick is 10 ms.
    let main = r#"
        #include <stdio.h>
        #include <sys/resource.h>
        #include <sys/times.h>
        #include <time.h>
        #include <unistd.h>
        static double truth(void) {
            long user = 0, system = 0;
            FILE *file = fopen("/proc/self/stat", "r");
            if (fscanf(file, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld",
                       &user, &system) != 2) return -1;
            fclose(file);
            return (user + system) / (double)sysconf(_SC_CLK_TCK);
        }
        int main(void) {
            while (truth() < 0.05) for (volatile int i = 0; i < 1000000; i++);
            struct rusage usage;
            struct tms ticks;
            getrusage(RUSAGE_SELF, &usage);
            times(&ticks);
            double before = usage.ru_utime.tv_sec + usage.ru_stime.tv_sec;
            double third = (ticks.tms_utime + ticks.tms_stime) / (double)sysconf(_SC_CLK_TCK);
            printf("%f %f %f\n", (double)clock() / CLOCKS_PER_SEC, before, third);
        }"#;
    compile(&place, "main", main, &[]);
    let read = |options: &[&str]| -> Vec<f64> {
        let followed = follow(&place, options, &["./main"]);
        assert_eq!(followed.seen["cpu_clock_reads"], 3);
        let words = followed.output.split_whitespace();
        words.map(|word| word.parse().unwrap()).collect()
    };
    for reading in read(&["--cpu-clock-rate", "1000"]) {
        assert!((40.0..40_000.0).contains(&reading), "{reading}");
    }
    for reading in read(&[]) {
        assert!(reading < 40.0, "{reading}");
    }
}

/// Each way to wait for CPU time: uses about so much of it, and says what is left of what was asked.
const TIMERS: &str = r#"
    #define _GNU_SOURCE
    #include <pthread.h>
    #include <signal.h>
    #include <stdio.h>
    #include <string.h>
    #include <sys/resource.h>
    #include <sys/time.h>
    #include <time.h>
    static volatile sig_atomic_t over;
    static void rings(int signal) { (void)signal; over = 1; }
    static const struct itimerval half = {.it_value = {0, 500000}};
    static const struct itimerspec value = {.it_value = {0, 500000000}};
    static void *sleeps(void *unused) {
        (void)unused;
        clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &value.it_value, 0);
        over = 1;
        return 0;
    }
    int main(int count, char **words) {
        const char *how = words[count - 1];
        pthread_t thread;
        timer_t timer;
        struct itimerval left = {0};
        struct itimerspec rest = {0};
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGPROF};
        signal(SIGPROF, rings), signal(SIGVTALRM, rings), signal(SIGXCPU, rings);
        if (!strcmp(how, "prof")) setitimer(ITIMER_PROF, &half, 0), getitimer(ITIMER_PROF, &left);
        if (!strcmp(how, "virtual")) setitimer(ITIMER_VIRTUAL, &half, 0);
        if (!strcmp(how, "timer")) {
            timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer);
            timer_settime(timer, 0, &value, 0);
            timer_gettime(timer, &rest);
        }
        if (!strcmp(how, "sleep")) pthread_create(&thread, 0, sleeps, 0);
        if (!strcmp(how, "limit")) setrlimit(RLIMIT_CPU, &(struct rlimit){1, RLIM_INFINITY});
        while (!over) for (volatile int i = 0; i < 10000; i++);
        FILE *file = fopen("/proc/self/schedstat", "r");
        long long ns = 0;
        if (!file || fscanf(file, "%lld", &ns) != 1) return 9;
        printf("%lld %ld %ld %ld\n", ns / 1000000, left.it_value.tv_usec / 1000,
               rest.it_value.tv_nsec / 1000000, half.it_value.tv_usec / 1000);
        return value.it_value.tv_nsec != 500000000;
    }"#;

#[test]
fn timers_of_cpu_time_are_counted_and_ring_earlier_if_asked() {
    let place = Place::new();
    compile(&place, "main", TIMERS, &["-pthread"]);
    for how in ["prof", "virtual", "timer", "sleep"] {
        let milliseconds = |options: &[&str]| -> Vec<i64> {
            let followed = follow(&place, options, &["./main", how]);
            assert_eq!(followed.status.code(), Some(0), "{how}");
            assert_eq!(followed.seen["cpu_timers"], 1, "{how}");
            assert_eq!(followed.seen["cpu_limits_reached"], 0, "{how}");
            let words = followed.output.split_whitespace();
            words.map(|word| word.parse().unwrap()).collect()
        };
        let (usual, faster) = (milliseconds(&[]), milliseconds(&["--cpu-clock-rate", "10"]));
        // The kernel charges whole ticks to whoever runs at their end: on a busy machine a timer of
        // 50 ms was seen to ring after 29.
        assert!((200..3_000).contains(&usual[0]), "{how}: {usual:?}");
        assert!((5..200).contains(&faster[0]), "{how}: {faster:?}");
        // It sees neither what it asked for change, nor less left (ticks of the kernel are added).
        assert_eq!(faster[3], 500, "{how}");
        for left in [faster[1], faster[2]] {
            assert!(left == 0 || (300..=600).contains(&left), "{how}: {left}");
        }
    }
}

#[test]
fn limits_of_cpu_time_are_seen_when_they_are_reached() {
    let place = Place::new();
    compile(&place, "main", TIMERS, &["-pthread"]);
    let soft = follow(&place, &[], &["./main", "limit"]);
    assert_eq!(soft.status.code(), Some(0));
    assert_eq!(soft.seen["cpu_limits_reached"], 1);
    // At the hard limit there is no signal to tell of it.
    let hard = follow(
        &place,
        &[],
        &["sh", "-c", "ulimit -t 1; ./main none; exit 0"],
    );
    assert_eq!(hard.status.code(), Some(0));
    assert_eq!(hard.seen["cpu_limits_reached"], 1);
    let unused = follow(&place, &[], &["sh", "-c", "ulimit -t 900; exit 0"]);
    assert_eq!(unused.seen["cpu_limits_reached"], 0);
}

#[test]
fn where_it_may_not_trace_the_program_runs_all_the_same() {
    let place = Place::new();
    // What is traced already cannot be traced a second time.
    let inner = [
        env!("CARGO_BIN_EXE_ensign-meter"),
        "follow",
        "--log",
        "inner.json",
    ];
    let argv = [&inner[..], &["--", "sh", "-c", "echo ran; exit 2"]].concat();
    let followed = follow(&place, &[], &argv);
    assert_eq!(followed.output, "ran\n");
    assert_eq!(followed.status.code(), Some(2));
    let seen: Value = serde_json::from_str(&place.read("inner.json")).unwrap();
    assert_eq!(seen["not_judged"], serde_json::json!(["not-allowed"]));
    assert_eq!(seen["exit"], 2);
}

#[test]
fn a_program_that_is_not_there() {
    let place = Place::new();
    let followed = follow(&place, &[], &["no-such-program"]);
    assert_eq!(followed.status.code(), Some(127));
    assert_eq!(followed.seen, Value::Null);
}

/// Calls of 32-bit programs, made by a 64-bit one: no 32-bit libraries are needed for that.
#[cfg(target_arch = "x86_64")]
#[test]
fn system_calls_of_32_bit_programs_are_understood() {
    let place = Place::new();
    let main = r#"
        #include <stdio.h>
        static char path[] = "made";
        static struct { int s, ns; } cpu;
        static int call(int number, long a, long b, long c) {
            int result;
            __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c)
                             : "memory", "r8", "r9", "r10", "r11");
            return result;
        }
        int main(void) {
            int file = call(5, (long)path, 0101, 0600);
            do call(265, 2, (long)&cpu, 0); while (cpu.s == 0 && cpu.ns < 10000000);
            printf("%d\n", cpu.s);
            return file < 0;
        }"#;
    compile(&place, "main", main, &["-static", "-no-pie"]);
    let alone = Command::new(place.dir.join("main"))
        .current_dir(&place.dir)
        .output();
    if !alone.unwrap().status.success() {
        return; // This kernel has no such calls.
    }
    let followed = follow(&place, &["--cpu-clock-rate", "1000000"], &["./main"]);
    assert_eq!(followed.status.code(), Some(0));
    assert_eq!(followed.ways("/made"), ["opened"]);
    assert!(followed.seen["cpu_clock_reads"].as_u64().unwrap() > 0);
    assert!(followed.output.trim().parse::<i64>().unwrap() >= 10);
    assert_eq!(followed.seen["not_judged"], serde_json::json!([]));
}

#[test]
fn where_running_tasks_are_is_found_by_looks() {
    let place = Place::new();
    let library = "long own(long n) { volatile long s = 0; while (n--) s += n; return s; }";
    compile(&place, "own.so", library, &["-shared", "-fPIC"]);
    let main = r#"
        long own(long n);
        int main(void) { return own(300000000) == 1; }"#;
    let linked = place.dir.join("own.so");
    compile(&place, "main", main, &[linked.to_str().unwrap()]);
    let used_ns = |followed: &Followed, name: &str| -> u64 {
        let samples = followed.seen["samples"].as_array().unwrap().iter();
        samples
            .filter(|each| each["path"].as_str().unwrap().ends_with(name))
            .map(|each| each["cpu_ns"].as_u64().unwrap())
            .sum()
    };
    let script = "sleep 0.1; ./main; exit 3";
    let followed = follow(&place, &["--sample-us", "1000"], &["sh", "-c", script]);
    assert_eq!(followed.status.code(), Some(3));
    let (all, own) = (used_ns(&followed, ""), used_ns(&followed, "/own.so"));
    assert!(own > 0 && own * 2 > all, "{}", followed.seen["samples"]);
    let calls = r#"
        #include <unistd.h>
        int main(void) { for (int i = 0; i < 40; i++) { static char much[1 << 24]; int ends[2];
            if (pipe(ends)) return 1;
            for (int n = 0; n < 3000; n++) { if (write(ends[1], much, 65536) != 65536) return 1;
                if (read(ends[0], much, 65536) != 65536) return 1; }
            close(ends[0]); close(ends[1]); } return 0; }"#;
    compile(&place, "calls", calls, &[]);
    let kernel_ns = |followed: &Followed| -> u64 {
        let samples = followed.seen["samples"].as_array().unwrap().iter();
        samples
            .map(|each| each["kernel_ns"].as_u64().unwrap())
            .sum()
    };
    assert!(
        kernel_ns(&followed) * 4 < all,
        "{}",
        followed.seen["samples"]
    );
    let calling = follow(&place, &["--sample-us", "1000"], &["./calls"]);
    assert!(
        kernel_ns(&calling) * 4 > 3 * used_ns(&calling, ""),
        "{}",
        calling.seen["samples"]
    );
    let in_calls: u64 = (calling.seen["calls"].as_array().unwrap().iter())
        .filter(|each| ["read", "write"].contains(&each["call"].as_str().unwrap()))
        .map(|each| each["cpu_ns"].as_u64().unwrap())
        .sum();
    assert!(
        in_calls * 10 > kernel_ns(&calling) * 9,
        "{}",
        calling.seen["calls"]
    );
    let unseen = follow(&place, &[], &["true"]);
    assert_eq!(unseen.seen["samples"], serde_json::json!([]));
    assert_eq!(unseen.seen["calls"], serde_json::json!([]));
}

#[test]
fn a_key_that_is_wanted_alone_is_shared_with_nobody() {
    let place = Place::new();
    let main = r#"
        #include <sys/ipc.h>
        #include <sys/shm.h>
        #include <sys/msg.h>
        int main(void) {
            int shared = shmget(0x1e5197, 4096, IPC_CREAT | 0600);
            int alone = shmget(0x1e5198, 4096, IPC_CREAT | IPC_EXCL | 0600);
            int queue = msgget(0x1e5199, IPC_CREAT | IPC_EXCL | 0600);
            shmctl(shared, IPC_RMID, 0);
            shmctl(alone, IPC_RMID, 0);
            msgctl(queue, IPC_RMID, 0);
            return shared < 0 || alone < 0 || queue < 0;
        }"#;
    compile(&place, "main", main, &[]);
    let followed = follow(&place, &[], &["./main"]);
    assert_eq!(followed.status.code(), Some(0));
    assert_eq!(followed.ways("key 0x1e5197"), ["opened"]);
    assert!(followed.ways("key 0x1e5198").is_empty());
    assert!(followed.ways("key 0x1e5199").is_empty());
}
