//! Parses an strace log into system calls, each with the log lines on which it begins and ends.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, ensure};

use crate::power_cut::disk::Place;

/// Calls that change files or names, and calls that send or receive. strace skips calls that the architecture lacks.
pub(crate) const TRACED: [&str; 37] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "lseek",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "truncate",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "sendfile",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "sync",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "sendto",
    "sendmsg",
    "recvfrom",
    "recvmsg",
    "msync",
];

const PIPE_LINE_MAX: usize = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// The arguments as strace prints them, between the parentheses.
    args: String,
    /// Line numbers in the log of the beginning and the end of the call.
    pub(crate) begin: usize,
    pub(crate) end: usize,
    pub(crate) time: SystemTime,
    /// The return value: the text after the equals sign.
    result: Option<String>,
}

/// A log that strace is still writing, watched for the exit of one process; its children may outlive it.
pub(crate) struct Watched {
    log: File,
    process: u32,
    /// An incomplete last line.
    begun: Vec<u8>,
}

impl Watched {
    pub(crate) fn open(log: &Path, process: u32) -> Result<Self> {
        Ok(Self {
            log: File::open(log)?,
            process,
            begun: vec![],
        })
    }

    /// Whether the lines added since the last call report the exit of the process.
    pub(crate) fn has_ended(&mut self) -> Result<bool> {
        self.log.read_to_end(&mut self.begun)?;
        let whole = self.begun.iter().rposition(|byte| *byte == b'\n');
        let added: Vec<u8> = self.begun.drain(..whole.map_or(0, |end| end + 1)).collect();
        let added = String::from_utf8_lossy(&added);
        Ok(added.lines().any(|line| is_end(line, self.process)))
    }
}

fn is_end(line: &str, process: u32) -> bool {
    let of = line.split_once(' ').map(|(thread, _)| thread);
    line.contains(" +++ ") && of == Some(process.to_string().as_str())
}

/// The calls until the process exits; later calls of its children are ignored.
pub(crate) fn read(log: &Path, process: u32) -> Result<Vec<Call>> {
    let mut begun: HashMap<String, Call> = HashMap::new();
    let mut calls = vec![];
    for (number, line) in BufReader::new(File::open(log)?).lines().enumerate() {
        let line = line?;
        if is_end(&line, process) {
            break;
        }
        let (thread, rest) = line.split_once(' ').context("expected a thread")?;
        let (time, rest) = rest
            .trim_start()
            .split_once(' ')
            .context("expected a time")?;
        // Writes to pipes go to agents and are ignored if long; only the server's ready line, which is short, matters.
        let to_pipe = rest.starts_with("write(") && rest.contains("<pipe:");
        if rest.starts_with("+++")
            || rest.starts_with("---")
            || (to_pipe && rest.len() > PIPE_LINE_MAX)
        {
            continue;
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs_f64(time.parse()?);
        let (mut call, rest) = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let (_, rest) = resumed
                    .split_once(" resumed>")
                    .context("no end of `resumed`")?;
                let call = begun.remove(thread);
                (
                    call.with_context(|| format!("line {number} resumes a call that never began"))?,
                    rest,
                )
            }
            None => {
                let (name, rest) = rest.split_once('(').context("expected a call")?;
                let call = Call {
                    name: name.to_owned(),
                    args: String::new(),
                    begin: number,
                    end: number,
                    time,
                    result: None,
                };
                (call, rest)
            }
        };
        if let Some(args) = rest.strip_suffix(" <unfinished ...>") {
            call.args.push_str(args);
            begun.insert(thread.to_owned(), call);
            continue;
        }
        let close = rest.rfind(") = ").or_else(|| rest.rfind(" = "));
        let close = close.with_context(|| format!("no return value: {rest:.200}"))?;
        call.args.push_str(&rest[..close]);
        let result = rest[close..].split_once("= ").map(|(_, result)| result);
        call.result = result.map(str::to_owned);
        call.end = number;
        calls.push(call);
    }
    Ok(calls)
}

impl Call {
    /// The return value of a successful call.
    pub(crate) fn returned(&self) -> Option<u64> {
        let result = self.result.as_deref()?;
        let digits = result.split([' ', '<']).next()?;
        digits.parse().ok()
    }

    fn arg(&self, index: usize) -> Option<&str> {
        self.args.split(", ").nth(index)
    }

    /// The flags of an `open` or `openat` call.
    pub(crate) fn flags(&self) -> &str {
        let at = usize::from(self.name == "openat") + 1;
        self.arg(at).unwrap_or_default()
    }

    pub(crate) fn last_number(&self) -> Result<u64> {
        let last = self
            .args
            .rsplit(", ")
            .next()
            .context("expected an argument")?;
        Ok(last.trim_end_matches(')').parse()?)
    }

    /// The string arguments, decoded and concatenated.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let texts = self.args.split('"').skip(1).step_by(2);
        texts.flat_map(unescaped).collect()
    }

    /// The name that strace prints for the descriptor in the first argument.
    pub(crate) fn descriptor(&self) -> Option<&str> {
        opened(self.arg(0)?)
    }

    pub(crate) fn place(&self) -> Option<Place> {
        let arg = self.arg(0)?;
        let path = PathBuf::from(OsStr::from_bytes(&unescaped(opened(arg)?)));
        let deleted = arg.ends_with("(deleted)");
        path.is_absolute().then_some(Place { path, deleted })
    }

    /// The path of the file that the call opened.
    pub(crate) fn opened(&self) -> Option<PathBuf> {
        let name = opened(self.result.as_deref()?)?;
        Some(PathBuf::from(OsStr::from_bytes(&unescaped(name))))
    }

    /// The path arguments, made absolute.
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>> {
        let mut folder: Option<PathBuf> = None;
        let mut paths = vec![];
        for arg in self.args.split(", ") {
            if let Some(text) = arg.strip_prefix('"') {
                let text = unescaped(text.trim_end_matches(')').trim_end_matches('"'));
                let path = Path::new(OsStr::from_bytes(&text)).to_owned();
                let path = match (path.is_absolute(), folder.take()) {
                    (false, Some(folder)) => folder.join(path),
                    _ => path,
                };
                paths.push(path);
            } else if let Some(name) = opened(arg) {
                folder = Some(PathBuf::from(OsStr::from_bytes(&unescaped(name))));
            }
        }
        ensure!(
            !paths.is_empty(),
            "no path among the arguments: {}",
            self.args
        );
        Ok(paths)
    }
}

/// The text between the first `<` and the last `>`, where strace prints the name of a descriptor.
fn opened(text: &str) -> Option<&str> {
    let begin = text.find('<')? + 1;
    let end = text.rfind('>')?;
    text.get(begin..end)
}

/// Decodes `\x2f` escapes; other characters are taken literally.
fn unescaped(text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or_default() as u8;
    let mut bytes = Vec::with_capacity(text.len() / 4 + 1);
    let mut at = 0;
    while at < text.len() {
        match text[at..] {
            [b'\\', b'x', high, low, ..] => {
                bytes.push(digit(high) << 4 | digit(low));
                at += 4;
            }
            _ => {
                bytes.push(text[at]);
                at += 1;
            }
        }
    }
    bytes
}
