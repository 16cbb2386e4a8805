use super::*;

/// All replies of the input, with it fed in pieces of the given size.
fn replies(input: &[u8], piece: usize) -> Result<Vec<Reply>, Malformed> {
    let mut parser = Parser::new();
    let mut found = Vec::new();
    for mut bytes in input.chunks(piece) {
        while !bytes.is_empty() {
            let (taken, reply) = parser.feed(bytes, None)?;
            found.extend(reply);
            bytes = &bytes[taken..];
        }
    }
    assert!(!parser.is_inside(), "ended inside a reply");
    Ok(found)
}

fn reply(kind: Kind, length: u64) -> Reply {
    Reply {
        kind,
        length,
        matches: true,
        error: kind == Kind::Error,
    }
}

fn samples() -> Vec<(&'static [u8], Reply)> {
    let with_error = Reply {
        error: true,
        ..reply(Kind::Array, 2)
    };
    vec![
        (b"+OK\r\n", reply(Kind::Status, 0)),
        (b"-ERR no\r\n", reply(Kind::Error, 0)),
        (b"!7\r\nERR a\r\n\r\n", reply(Kind::Error, 7)),
        (b":-9223372036854775808\r\n", reply(Kind::Integer, 0)),
        (b":+5\r\n", reply(Kind::Integer, 0)),
        (b"$5\r\nab\r\nc\r\n", reply(Kind::Bulk, 5)),
        (b"$0\r\n\r\n", reply(Kind::Bulk, 0)),
        (b"=7\r\ntxt:abc\r\n", reply(Kind::Bulk, 7)),
        (b"$-1\r\n", reply(Kind::Nil, 0)),
        (b"*-1\r\n", reply(Kind::Nil, 0)),
        (b"_\r\n", reply(Kind::Nil, 0)),
        (b"*0\r\n", reply(Kind::Array, 0)),
        (
            b"*2\r\n$1\r\na\r\n*2\r\n:1\r\n*0\r\n",
            reply(Kind::Array, 2),
        ),
        (b"*2\r\n+OK\r\n-ERR inner\r\n", with_error),
        (
            b"%1\r\n+a\r\n~2\r\n#t\r\n,3.5e-7\r\n",
            reply(Kind::Array, 1),
        ),
        (b"~1\r\n_\r\n", reply(Kind::Array, 1)),
        (b",-inf\r\n", reply(Kind::Scalar, 0)),
        (b"#f\r\n", reply(Kind::Scalar, 0)),
        (b"(34928903284092385094382509\r\n", reply(Kind::Scalar, 0)),
        // Attributes belong to no reply, in front and inside; nor do pushes.
        (b"|1\r\n+ttl\r\n-ERR x\r\n$1\r\na\r\n", reply(Kind::Bulk, 1)),
        (
            b"*1\r\n|1\r\n+a\r\n*1\r\n+b\r\n:2\r\n",
            reply(Kind::Array, 1),
        ),
        (b"|0\r\n:1\r\n", reply(Kind::Integer, 0)),
        (
            b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n:7\r\n",
            reply(Kind::Integer, 0),
        ),
    ]
}

#[test]
fn every_kind_is_read_in_pieces_of_any_size() {
    for (bytes, wanted) in samples() {
        for piece in 1..=bytes.len() {
            let shown = bytes.escape_ascii();
            assert_eq!(
                replies(bytes, piece),
                Ok(vec![wanted]),
                "{shown} by {piece}"
            );
        }
    }
}

#[test]
fn many_replies_are_read_wherever_they_are_split() {
    let all: Vec<u8> = samples()
        .iter()
        .flat_map(|(bytes, _)| *bytes)
        .copied()
        .collect();
    let wanted: Vec<Reply> = samples().iter().map(|(_, reply)| *reply).collect();
    for at in 1..all.len() {
        let mut parser = Parser::new();
        let mut found = Vec::new();
        for mut bytes in [&all[..at], &all[at..]] {
            while !bytes.is_empty() {
                let (taken, reply) = parser.feed(bytes, None).unwrap();
                found.extend(reply);
                bytes = &bytes[taken..];
            }
        }
        assert_eq!(found, wanted, "split at {at}");
    }
}

#[test]
fn texts_are_compared_wherever_they_are_split() {
    for (bytes, expected, matches) in [
        (&b"$5\r\nabcde\r\n"[..], &b"abcde"[..], true),
        (b"$5\r\nabcdX\r\n", b"abcde", false),
        (b"$4\r\nabcd\r\n", b"abcde", false),
        (b"$6\r\nabcdef\r\n", b"abcde", false),
        (b"$0\r\n\r\n", b"", true),
        (b"+QUEUED\r\n", b"QUEUED", true),
        (b"+OK\r\n", b"QUEUED", false),
        (b":5\r\n", b"", false),
        (b"*1\r\n$1\r\na\r\n", b"a", false),
    ] {
        for at in 0..bytes.len() {
            let mut parser = Parser::new();
            let (taken, none) = parser.feed(&bytes[..at], Some(expected)).unwrap();
            assert_eq!((taken, none), (at, None));
            let (_, reply) = parser.feed(&bytes[at..], Some(expected)).unwrap();
            let shown = bytes.escape_ascii();
            assert_eq!(reply.unwrap().matches, matches, "{shown} split at {at}");
        }
    }
}

#[test]
fn errors_are_quoted_up_to_their_limit() {
    let mut parser = Parser::new();
    parser.feed(b"-OOM command not al", None).unwrap();
    parser.feed(b"lowed\r\n", None).unwrap();
    assert_eq!(parser.error(), b"OOM command not allowed");
    parser
        .feed(b"*2\r\n-ERR first\r\n-ERR second\r\n", None)
        .unwrap();
    assert_eq!(parser.error(), b"ERR first");
    let long = format!("*2\r\n-{}\r\n-ERR second\r\n", "x".repeat(5000));
    parser.feed(long.as_bytes(), None).unwrap();
    assert_eq!(parser.error(), "x".repeat(200).as_bytes());
}

#[test]
fn what_is_no_reply_is_refused() {
    for (bytes, part) in [
        (&b"HTTP/1.1 400\r\n"[..], "begins with \"H\""),
        (b"\r\n", "begins with"),
        (b"$?\r\n", "streamed"),
        (b"*?\r\n", "streamed"),
        (b";4\r\n", "begins with"),
        (b"$x\r\n", "a number"),
        (b"$\r\n", "a number"),
        (b":12345678901234567890\r\n", "too many digits"),
        (b"$-2\r\n", "a length is -2"),
        (b"%-1\r\n", "a length is -1"),
        (b"$99999999999\r\n", "a string of"),
        (b"*99999999999\r\n", "too large"),
        (b"$1\r\nab\r\n", "longer"),
        (b"$1\r\na\rb", "line feed"),
        (b"+OK\rx", "line feed"),
        (b"#x\r\n", "a line"),
        (b"_x\r\n", "a line"),
        (b",\r\n", "a line"),
        (b"*1\r\n>1\r\n+a\r\n", "a push"),
        (&b"*1\r\n".repeat(70), "too deep"),
    ] {
        for piece in [1, bytes.len()] {
            let text = replies(bytes, piece).unwrap_err().0;
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

mod any_bytes {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::{select, Index};

    /// The replies before anything that is none, and whether there was such.
    fn read(mut pieces: Vec<&[u8]>) -> (Vec<Reply>, bool) {
        let mut parser = Parser::new();
        let mut found = Vec::new();
        for bytes in &mut pieces {
            while !bytes.is_empty() {
                match parser.feed(bytes, None) {
                    Ok((taken, reply)) => {
                        assert!(taken > 0, "no byte was taken");
                        found.extend(reply);
                        *bytes = &bytes[taken..];
                    }
                    Err(_) => return (found, true),
                }
            }
        }
        (found, false)
    }

    /// Bytes that often get far: most of them mean something.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let words: Vec<&[u8]> = vec![
            b"\r\n",
            b"+",
            b"-ERR ",
            b":",
            b"$",
            b"=",
            b"!",
            b"*",
            b"~",
            b"%",
            b">",
            b"|",
            b"#t",
            b",",
            b"(",
            b"_",
            b"0",
            b"1",
            b"2",
            b"-1",
            b"9999999999999999999",
            b"?",
            b"abc",
        ];
        let some = prop_oneof![
            9 => select(words).prop_map(<[u8]>::to_vec),
            1 => vec(any::<u8>(), 0..4),
        ];
        vec(some, 0..40).prop_map(|parts| parts.concat())
    }

    /// A whole reply with its kind, nested a little.
    fn whole() -> impl Strategy<Value = (Kind, Vec<u8>)> {
        let text = vec(any::<u8>(), 0..20);
        let leaf = prop_oneof![
            "[a-z ]{0,9}".prop_map(|line| (Kind::Status, format!("+{line}\r\n").into_bytes())),
            any::<i64>().prop_map(|n| (Kind::Integer, format!(":{n}\r\n").into_bytes())),
            text.prop_map(|text| {
                let head = format!("${}\r\n", text.len()).into_bytes();
                (Kind::Bulk, [head, text, b"\r\n".to_vec()].concat())
            }),
            Just((Kind::Nil, b"_\r\n".to_vec())),
        ];
        leaf.prop_recursive(4, 20, 4, |inner| {
            vec(inner, 0..4).prop_map(|parts| {
                let head = format!("*{}\r\n", parts.len()).into_bytes();
                let parts = parts.into_iter().map(|(_, bytes)| bytes);
                (
                    Kind::Array,
                    std::iter::once(head)
                        .chain(parts)
                        .collect::<Vec<_>>()
                        .concat(),
                )
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

        #[test]
        fn are_read_alike_however_they_are_cut(bytes in bytes(), cuts in vec(any::<Index>(), 0..6)) {
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(pieces), read(vec![&bytes]));
        }

        #[test]
        fn of_whole_replies_are_as_many_replies(replies in vec(whole(), 0..5)) {
            let bytes = replies.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<u8>>();
            let (found, wrong) = read(vec![&bytes]);
            prop_assert!(!wrong);
            let kinds: Vec<Kind> = found.iter().map(|reply| reply.kind).collect();
            prop_assert_eq!(kinds, replies.iter().map(|(kind, _)| *kind).collect::<Vec<_>>());
        }
    }
}
