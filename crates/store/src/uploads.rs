//! Pictures people send along, kept as long as the conversations that show them.
//!
//! A picture is named by chance, and that name is all it takes to see it: pages of sessions have no
//! cookie of their own.

use std::io;
use std::path::PathBuf;

use uuid::Uuid;

use crate::{DataDir, OpenError};

/// The largest picture that is taken.
pub const PICTURE_BYTES_MAX: usize = 10 * 1024 * 1024;

/// What a picture may be: its ending, its type, and how its bytes begin.
const KINDS: [(&str, &str, &[u8]); 4] = [
    ("png", "image/png", b"\x89PNG\r\n\x1a\n"),
    ("jpg", "image/jpeg", b"\xff\xd8\xff"),
    ("gif", "image/gif", b"GIF8"),
    ("webp", "image/webp", b"RIFF"),
];

/// Why a picture was not taken. Each sentence can be shown to a person.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    #[error("That is not a picture we can send: PNG, JPEG, GIF and WebP work.")]
    NotAPicture,
    #[error("A picture may have 10 MB at most.")]
    TooBig,
    #[error("The picture could not be saved: {0}")]
    Write(#[from] io::Error),
}

#[derive(Debug, Clone)]
pub struct Uploads {
    folder: PathBuf,
}

/// A kept picture.
#[derive(Debug)]
pub struct Upload {
    pub mime_type: &'static str,
    pub bytes: Vec<u8>,
}

impl Uploads {
    pub fn open(dir: &DataDir) -> Result<Self, OpenError> {
        let folder = dir.uploads_folder()?;
        Ok(Self { folder })
    }

    /// Keeps a picture, durably, and names it. Waits for the disk.
    pub fn save(&self, bytes: &[u8]) -> Result<String, NotTaken> {
        if bytes.len() > PICTURE_BYTES_MAX {
            return Err(NotTaken::TooBig);
        }
        let kind = KINDS.iter().find(|(ending, _, begins)| {
            // Sounds begin like WebP, too.
            let webp = *ending != "webp" || bytes.get(8..12) == Some(b"WEBP");
            bytes.starts_with(begins) && webp
        });
        let (ending, _, _) = kind.ok_or(NotTaken::NotAPicture)?;
        let id = format!("{}.{ending}", Uuid::new_v4());
        durable::replace(&self.folder.join(&id), bytes)?;
        Ok(id)
    }

    /// The picture of that name, if it is one of ours. Waits for the disk.
    pub fn load(&self, id: &str) -> Option<Upload> {
        let mime_type = mime_type(id)?;
        let bytes = std::fs::read(self.folder.join(id)).ok()?;
        Some(Upload { mime_type, bytes })
    }

    pub fn has(&self, id: &str) -> bool {
        mime_type(id).is_some() && self.folder.join(id).is_file()
    }
}

/// The type of a well-formed name. No other name ever reaches the disk.
fn mime_type(id: &str) -> Option<&'static str> {
    let (name, ending) = id.split_once('.')?;
    let plain = name.len() == 36 && Uuid::try_parse(name).is_ok_and(|id| id.to_string() == name);
    let kind = KINDS.iter().find(|(known, _, _)| *known == ending);
    kind.filter(|_| plain).map(|(_, mime_type, _)| *mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uploads() -> (tempfile::TempDir, Uploads) {
        let root = tempfile::tempdir().unwrap();
        let dir = DataDir::prepare(&root.path().join("data")).unwrap();
        (root, Uploads::open(&dir).unwrap())
    }

    #[test]
    fn a_picture_comes_back_as_it_was() {
        let (_root, uploads) = uploads();
        let id = uploads.save(b"\x89PNG\r\n\x1a\nrest").unwrap();
        let upload = uploads.load(&id).unwrap();
        assert_eq!(upload.mime_type, "image/png");
        assert_eq!(upload.bytes, b"\x89PNG\r\n\x1a\nrest");
    }

    #[test]
    fn what_is_no_picture_or_too_much_is_refused() {
        let (_root, uploads) = uploads();
        for bytes in [&b"<svg onload=alert(1)>"[..], b"", b"RIFF____WAVE", b"%PDF"] {
            assert!(matches!(uploads.save(bytes), Err(NotTaken::NotAPicture)));
        }
        let mut big = b"\xff\xd8\xff".to_vec();
        big.resize(PICTURE_BYTES_MAX + 1, 0);
        assert!(matches!(uploads.save(&big), Err(NotTaken::TooBig)));
    }

    #[test]
    fn no_name_leads_out_of_the_folder() {
        let (_root, uploads) = uploads();
        let id = uploads.save(b"GIF89a").unwrap();
        let upper = id.to_uppercase();
        for name in [
            "../token",
            "../token.png",
            "",
            ".",
            ".png",
            "x.png",
            &upper,
            "a/b.png",
        ] {
            assert!(uploads.load(name).is_none() && !uploads.has(name), "{name}");
        }
    }
}
