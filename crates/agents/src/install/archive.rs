//! Verification of an agent that is downloaded as an archive or a single program, so that no link leaves its directory.

use std::fs::{self, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use sha2::{Digest, Sha256};

/// Maximum size of a download.
pub(super) const ARCHIVE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// The program that unpacks the archive; `None` if the download is the agent's program itself.
pub(super) fn unpacker(url: &str) -> Option<&'static str> {
    let ends = |endings: &[&str]| endings.iter().any(|ending| url.ends_with(ending));
    match url {
        _ if ends(&[".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz"]) => Some("tar"),
        _ if ends(&[".zip"]) => Some("unzip"),
        _ => None,
    }
}

/// Checks the size and the SHA-256 of a download.
pub(super) fn check(file: &Path, sha256: Option<&str>) -> Result<(), String> {
    let cannot = |error: io::Error| format!("the download cannot be read: {error}");
    let mut reader = File::open(file).map_err(cannot)?;
    if reader.metadata().map_err(cannot)?.len() > ARCHIVE_BYTES_MAX {
        return Err("the download is larger than 512 MiB".to_owned());
    }
    let Some(wanted) = sha256 else { return Ok(()) };
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match reader.read(&mut buffer).map_err(cannot)? {
            0 => break,
            count => sum.update(&buffer[..count]),
        }
    }
    let found: String = sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    match found == wanted {
        true => Ok(()),
        false => Err(format!(
            "the download does not match the list: its SHA-256 is {found} instead of {wanted}"
        )),
    }
}

/// Checks that no link leads out of the unpacked directory, and makes the program executable.
pub(super) fn check_unpacked(folder: &Path, program: &str) -> Result<(), String> {
    walk(folder, 0)?;
    let path = folder.join(program);
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    if !is_file {
        return Err(format!("the archive contains no `{program}`"));
    }
    fs::set_permissions(&path, Permissions::from_mode(0o755))
        .map_err(|error| format!("`{program}` cannot be made executable: {error}"))
}

/// Checks a directory and those in it. `depth` is its depth below the directory that no link may leave.
fn walk(folder: &Path, depth: usize) -> Result<(), String> {
    let cannot = |error: io::Error| format!("the unpacked archive cannot be read: {error}");
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let kind = entry.file_type().map_err(cannot)?;
        if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(cannot)?;
            if !stays_inside(&target, depth) {
                let name = entry.file_name().to_string_lossy().into_owned();
                return Err(format!("the link `{name}` leads out of the archive"));
            }
        } else if kind.is_dir() {
            walk(&entry.path(), depth + 1)?;
        } else if !kind.is_file() {
            return Err("it contains an entry that is neither a file nor a directory".to_owned());
        }
    }
    Ok(())
}

fn stays_inside(target: &Path, depth: usize) -> bool {
    let mut left = depth;
    target.components().all(|part| match part {
        Component::Normal(_) => {
            left += 1;
            true
        }
        Component::CurDir => true,
        Component::ParentDir => left.checked_sub(1).map(|less| left = less).is_some(),
        Component::RootDir | Component::Prefix(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn download_with_another_sha256_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        fs::write(&file, "abc").unwrap();
        let right = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(check(&file, Some(right)), Ok(()));
        assert_eq!(check(&file, None), Ok(()));
        assert!(
            check(&file, Some(&right.replace('b', "c")))
                .unwrap_err()
                .contains(right)
        );
    }

    #[test]
    fn link_out_of_the_archive_is_refused_in_any_directory() {
        for (place, target, fits) in [
            ("", "/etc/passwd", false),
            ("", "../x", false),
            ("", "a/../../x", false),
            ("", "lib/x", true),
            ("lib", "../bin/x", true),
            ("lib", "../../x", false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir_all(dir.path().join("lib")).unwrap();
            fs::write(dir.path().join("agent"), "#!/bin/sh\n").unwrap();
            symlink(target, dir.path().join(place).join("link")).unwrap();
            assert_eq!(
                check_unpacked(dir.path(), "agent").is_ok(),
                fits,
                "{place} {target}"
            );
        }
    }

    #[test]
    fn archive_without_its_program_as_a_regular_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(
            check_unpacked(dir.path(), "agent")
                .unwrap_err()
                .contains("no `agent`")
        );
        symlink("elsewhere", dir.path().join("agent")).unwrap();
        assert!(check_unpacked(dir.path(), "agent").is_err());
    }
}
