//! Pictures attached to messages, kept as long as the conversations that show them.
//!
//! A picture has a random name, and knowing the name is enough to fetch the picture: session frames have
//! no cookie.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use uuid::Uuid;

use crate::{DataDir, OpenError};

/// Maximum size of a picture.
pub const PICTURE_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Accepted formats: file extension, MIME type, first bytes.
const KINDS: [(&str, &str, &[u8]); 4] = [
    ("png", "image/png", b"\x89PNG\r\n\x1a\n"),
    ("jpg", "image/jpeg", b"\xff\xd8\xff"),
    ("gif", "image/gif", b"GIF8"),
    ("webp", "image/webp", b"RIFF"),
];

/// The reason why a picture was refused. Users see the messages.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    #[error("Cannot add the picture: its format is not supported. Use PNG, JPEG, GIF or WebP.")]
    NotAPicture,
    #[error("Cannot add the picture: it is larger than 10 MB. Use a smaller one.")]
    TooBig,
    #[error("Cannot add the picture: it could not be saved ({0}). Check the disk and try again.")]
    Write(#[from] io::Error),
}

/// The uploaded pictures.
#[derive(Debug, Clone)]
pub struct Uploads {
    folder: PathBuf,
}

/// A saved picture.
#[derive(Debug)]
pub struct Upload {
    pub mime_type: &'static str,
    pub bytes: Vec<u8>,
}

impl Uploads {
    /// Opens the folder of uploads and creates it if it is missing.
    pub fn open(dir: &DataDir) -> Result<Self, OpenError> {
        let folder = dir.uploads_folder()?;
        Ok(Self { folder })
    }

    /// Saves a picture durably and returns its name. Blocks on the disk.
    pub fn save(&self, bytes: &[u8]) -> Result<String, NotTaken> {
        if bytes.len() > PICTURE_BYTES_MAX {
            return Err(NotTaken::TooBig);
        }
        let kind = KINDS.iter().find(|(ending, _, begins)| {
            // WAV files begin with the same four bytes as WebP.
            let webp = *ending != "webp" || bytes.get(8..12) == Some(b"WEBP");
            bytes.starts_with(begins) && webp
        });
        let (ending, _, _) = kind.ok_or(NotTaken::NotAPicture)?;
        let id = format!("{}.{ending}", Uuid::new_v4());
        durable::replace(&self.folder.join(&id), bytes)?;
        Ok(id)
    }

    /// The picture with this name. Blocks on the disk.
    pub fn load(&self, id: &str) -> Option<Upload> {
        let mime_type = mime_type(id)?;
        let bytes = std::fs::read(self.folder.join(id)).ok()?;
        Some(Upload { mime_type, bytes })
    }

    /// Whether a message can use the picture. From now on it counts as new, so that it is not removed before the
    /// message is on disk.
    pub fn has(&self, id: &str) -> bool {
        if !is_picture(id) {
            return false;
        }
        let path = self.folder.join(id);
        if let Ok(file) = File::options().append(true).open(&path) {
            // On a read-only disk nothing is removed either.
            let _ = file.set_modified(SystemTime::now());
        }
        path.is_file()
    }
}

/// Maximum length of a picture's name after its UUID.
pub(crate) const ENDING_CHARS_MAX: usize = 5;

pub(crate) fn endings() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(ending, ..)| *ending)
}

/// Whether a name is that of a picture.
pub(crate) fn is_picture(name: &str) -> bool {
    mime_type(name).is_some()
}

/// The MIME type of a well-formed name. Other names never reach the file system.
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
    fn saved_picture_is_loaded_unchanged() {
        let (_root, uploads) = uploads();
        let id = uploads.save(b"\x89PNG\r\n\x1a\nrest").unwrap();
        let upload = uploads.load(&id).unwrap();
        assert_eq!(upload.mime_type, "image/png");
        assert_eq!(upload.bytes, b"\x89PNG\r\n\x1a\nrest");
    }

    #[test]
    fn other_formats_and_oversized_pictures_are_refused() {
        let (_root, uploads) = uploads();
        for bytes in [&b"<svg onload=alert(1)>"[..], b"", b"RIFF____WAVE", b"%PDF"] {
            assert!(matches!(uploads.save(bytes), Err(NotTaken::NotAPicture)));
        }
        let mut big = b"\xff\xd8\xff".to_vec();
        big.resize(PICTURE_BYTES_MAX + 1, 0);
        assert!(matches!(uploads.save(&big), Err(NotTaken::TooBig)));
    }

    #[test]
    fn malformed_names_are_never_looked_up() {
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
