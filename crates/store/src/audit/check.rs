//! Checks the chain of the audit files, for `liminal doctor`. It changes nothing.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::chain::{FIRST, Scan};
use crate::names;

/// How often the files are opened again because the server is renaming them.
const ATTEMPTS_MAX: usize = 5;

/// What the audit files in a data directory contain, and where their chain breaks; one text per existing file.
pub fn check_audit(data_dir: &Path) -> Vec<String> {
    let files = [
        (names::AUDIT, names::AUDIT_BEFORE),
        (names::AUDIT_REFUSED, names::AUDIT_REFUSED_BEFORE),
    ];
    let report =
        |(name, before): (&str, &str)| match read(&data_dir.join(name), &data_dir.join(before)) {
            Ok((None, None)) => None,
            Ok((text, text_before)) => Some(report(name, text, before, text_before)),
            Err(error) => Some(format!(
                "{name}  cannot be read: {error}. Make it readable to check it."
            )),
        };
    files.into_iter().filter_map(report).collect()
}

type Text = Option<Vec<u8>>;

/// The texts of both files at one moment, even if the server rotates them meanwhile.
fn read(path: &Path, before: &Path) -> io::Result<(Text, Text)> {
    let open = |path: &Path| match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    };
    let content = |file: Option<File>| {
        let read = |mut file: File| {
            let mut text = vec![];
            file.read_to_end(&mut text).map(|_| text)
        };
        file.map(read).transpose()
    };
    let mut attempts = 1;
    loop {
        let (file, file_before) = (open(path)?, open(before)?);
        let opened = file.as_ref().map(File::metadata).transpose()?;
        let now = path.metadata().ok();
        let inode = |of: Option<std::fs::Metadata>| of.map(|of| of.ino());
        if inode(opened) == inode(now) || attempts == ATTEMPTS_MAX {
            return Ok((content(file)?, content(file_before)?));
        }
        attempts += 1;
    }
}

fn report(name: &str, text: Text, before: &str, text_before: Text) -> String {
    // The first line of the file before refers to one that is no longer there.
    let mut scan = match text_before {
        Some(_) => Scan::default(),
        None => Scan::after(FIRST),
    };
    scan.follow(&text_before.unwrap_or_default());
    let torn_before = scan.torn.take().is_some();
    let broken = match scan.broken.take() {
        Some(line) => Some((before, line)),
        None => {
            scan.follow(&text.unwrap_or_default());
            scan.broken.map(|line| (name, line))
        }
    };
    if let Some((file, line)) = broken {
        return format!(
            "{name}  the chain breaks at line {line} of {file}: that line or the one before it was changed, inserted or \
             removed after it was written. Compare the lines with a backup."
        );
    }
    if torn_before {
        return format!("{name}  the end of {before} is not readable. Compare it with a backup.");
    }
    let mut report = format!("{name}  lines: {}", scan.lines);
    report += match scan.chained {
        true => ", chain complete",
        false => "",
    };
    if scan.unchained > 0 {
        report += &format!(", from before the chain: {}", scan.unchained);
    }
    if scan.repaired > 0 {
        report += &format!(", torn places repaired: {}", scan.repaired);
    }
    if scan.torn.is_some() {
        report += ", a torn end, which the next start repairs";
    }
    report
}
