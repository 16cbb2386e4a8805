use super::*;

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

fn read(text: &str) -> Line {
    Line::read(Tool::Cc, &words(text))
}

fn texts(line: &Line) -> Vec<&str> {
    line.inputs
        .iter()
        .map(|input| input.text.as_str())
        .collect()
}

#[test]
fn drivers_compile_and_link() {
    for (text, compiles, links) in [
        ("-O2 -c a.c -o a.o", true, false),
        ("a.o b.a -lm -o program", false, true),
        ("-O2 a.c -o program", true, true),
        ("-v a.c -o program", true, true),
        ("-x c - -o /dev/null", true, true),
        ("-xc++ unit.inc -c", true, false),
        ("-S a.c", true, false),
        ("-o out", false, false),
        ("--version", false, false),
        ("--version a.c", false, false),
        ("-E a.c", false, false),
        ("-print-prog-name=ld", false, false),
        ("-MM a.c", false, false),
        ("-MMD -MF a.d -c a.c", true, false),
        ("-v", false, false),
    ] {
        let line = read(text);
        assert_eq!((line.compiles, line.links), (compiles, links), "{text}");
    }
}

#[test]
fn words_of_a_link_line() {
    let line = read(
        "-O2 -Lx -L y main.o -Wl,--whole-archive liba.a -Wl,--no-whole-archive -Wl,-Bstatic \
         -lz -Wl,-Bdynamic -Wl,--start-group -l m -Wl,--end-group -Xlinker -z -Xlinker now -o out",
    );
    assert_eq!(texts(&line), ["main.o", "liba.a", "-lz", "-lm"]);
    let of = |what: fn(&LinkWord) -> bool| line.inputs.iter().map(what).collect::<Vec<_>>();
    assert_eq!(of(|word| word.whole), [false, true, false, false]);
    assert_eq!(of(|word| word.r#static), [false, false, true, false]);
    assert_eq!(of(|word| word.grouped), [false, false, false, true]);
    assert_eq!(line.folders, ["x", "y"]);
    assert_eq!(line.output.as_deref(), Some("out"));
}

#[test]
fn options_of_the_linker_have_values_too() {
    assert_eq!(
        texts(&read("-Wl,-soname,libx.so.1 -Wl,-soname -Wl,y.so a.o")),
        ["a.o"]
    );
    assert_eq!(
        texts(&read("-Wl,--whole-archive,b.a -l m -x c")),
        ["b.a", "-lm"]
    );
    assert_eq!(
        texts(&read("-c -P -Wl,--hash-style,gnu -Wl,-l,m,--library,z a.o")),
        ["-lm", "-lz", "a.o"]
    );
    assert!(read("-static -lz").inputs[0].r#static);
    let linked = Line::read(
        Tool::Ld,
        &words("-m elf_x86_64 -T s.ld -o p a.o -r b.c -lz"),
    );
    assert_eq!(texts(&linked), ["a.o", "b.c", "-lz"]);
    assert_eq!(linked.output.as_deref(), Some("p"));
    assert!(linked.links && !linked.compiles && linked.sources.is_empty());
}

#[test]
fn an_output_is_known_however_it_is_spelled() {
    for (text, output, places) in [
        ("-O2 -o out main.o", Some("out"), vec![1, 2]),
        ("-O2 -oout main.o", Some("out"), vec![1]),
        ("--output=out main.o", Some("out"), vec![0]),
        ("--output out main.o", Some("out"), vec![0, 1]),
        ("a.c -o x -o y.o", Some("y.o"), vec![1, 2, 3, 4]),
        ("-object main.o -o", None, vec![2]),
        ("main.o", None, vec![]),
    ] {
        let line = read(text);
        assert_eq!(line.output.as_deref(), output, "{text}");
        assert_eq!(line.output_words, places, "{text}");
    }
}

#[test]
fn values_of_options_are_no_files() {
    let line = read(
        "-include a.c -MF b.c -B c.o -dumpdir d.o main.c -Xclang e.c f.o -l g.o -dumpbase h.c",
    );
    assert_eq!(line.files, [8, 11]);
    assert_eq!(line.sources, ["main.c"]);
    assert_eq!(texts(&line), ["f.o", "-lg.o"]);
}

#[test]
fn a_language_makes_sources_of_any_name() {
    assert_eq!(read("-x c unit.inc -x none a.o").sources, ["unit.inc"]);
}
