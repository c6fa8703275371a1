//! The states that a power cut may leave on a disk, under three models of file systems.
//!
//! Pure. A [`Cut`] separates durable from pending operations; a [`Choice`] selects which pending operations are kept.
//! Choices are numbered: first the extremes (nothing, everything, each alone kept, each alone missing), then random
//! ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::power_cut::disk::{Change, Disk, Name, Node, Origin, Step};
use crate::power_cut::random::Random;
use crate::power_cut::state::{Content, State};

const PAGE: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Model {
    /// Like ext4 with `data=ordered`: names commit in order, at least up to the last sync of any file; a file keeps any
    /// prefix of the writes since its own last sync.
    Ordered,
    /// What POSIX guarantees: file contents and folder entries are durable by a sync of that file or folder; every other
    /// name and page is kept or lost independently.
    Strict,
    /// Like a journal of metadata only: names as in `Ordered`, but a file's length may be durable before its data, which
    /// then reads as zeros.
    Zeros,
}

impl Model {
    pub(crate) const ALL: [Self; 3] = [Self::Ordered, Self::Strict, Self::Zeros];
}

/// A change of names that is not durable yet.
#[derive(Debug)]
struct PendingName {
    operation: usize,
    names: Vec<Name>,
    /// Kept only if the previous change is kept, because no file system loses a file by moving it.
    after_previous: bool,
}

/// The disk at the moment of a cut.
pub(crate) struct Cut<'a> {
    disk: &'a Disk,
    model: Model,
    names: BTreeMap<(Node, String), Node>,
    pending_names: Vec<PendingName>,
    files: BTreeMap<Node, Content>,
    /// Pending operations on the data of each file, in order.
    pending_data: BTreeMap<Node, Vec<usize>>,
    /// Under `Ordered` and `Zeros`, names and lengths are durable for operations before this number.
    committed: usize,
}

/// How much of a file's pending data is kept.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Data {
    Nothing,
    All,
    /// This fraction of the written bytes, from the beginning.
    Part(f64),
    /// A random subset of the pages of each write, chosen by a seed.
    Pages(u64),
    /// The whole length, but zeros in all added pages, or in a random subset chosen by a seed.
    Zeros(Option<u64>),
}

/// Which pending operations are kept.
#[derive(Debug)]
pub(crate) struct Choice {
    names: Vec<bool>,
    data: BTreeMap<Node, Data>,
}

impl<'a> Cut<'a> {
    /// A cut after the first `steps` steps. If syncs are ignored, only the initial content is durable.
    pub(crate) fn new(disk: &'a Disk, steps: usize, model: Model, ignores_syncs: bool) -> Self {
        let mut synced: BTreeMap<Node, usize> = BTreeMap::new();
        let mut done = 0;
        for step in &disk.steps[..steps] {
            match *step {
                Step::Done(operation) => done = operation + 1,
                Step::Synced { node, before } if !ignores_syncs => {
                    let known = synced.entry(node).or_default();
                    *known = before.max(*known);
                }
                Step::Synced { .. } => {}
            }
        }
        let committed = synced.values().copied().max().unwrap_or(0);
        let synced = |node: Node| synced.get(&node).copied().unwrap_or(0);
        let mut cut = Self {
            disk,
            model,
            names: disk.first_names.clone(),
            pending_names: vec![],
            files: BTreeMap::new(),
            pending_data: BTreeMap::new(),
            committed,
        };
        for (node, origin) in disk.origins.iter().enumerate() {
            if let Origin::File(bytes, time) = origin {
                let content = Content::new(bytes.to_vec(), *time);
                cut.files.insert(node, content);
            }
        }
        for (number, operation) in disk.operations[..done].iter().enumerate() {
            match &operation.change {
                Change::Names(names) => cut.name(number, names, &synced),
                Change::Write { file, .. } | Change::Length { file, .. } => {
                    if number < synced(*file) {
                        cut.files.entry(*file).or_default().apply(operation);
                    } else {
                        cut.pending_data.entry(*file).or_default().push(number);
                    }
                }
            }
        }
        cut
    }

    fn name(&mut self, operation: usize, names: &[Name], synced: &dyn Fn(Node) -> usize) {
        let durable = |folder: Node| match self.model {
            Model::Strict => operation < synced(folder),
            Model::Ordered | Model::Zeros => operation < self.committed,
        };
        let moves = names.len() == 2 && names[0].folder != names[1].folder;
        if !(self.model == Model::Strict && moves) {
            match durable(names[0].folder) {
                true => set(&mut self.names, names),
                false => self.pending_names.push(PendingName {
                    operation,
                    names: names.to_vec(),
                    after_previous: false,
                }),
            }
            return;
        }
        let (there, gone) = (&names[..1], &names[1..]);
        let (there_is, gone_is) = (durable(there[0].folder), durable(gone[0].folder));
        match there_is || gone_is {
            true => set(&mut self.names, there),
            false => self.pending_names.push(PendingName {
                operation,
                names: there.to_vec(),
                after_previous: false,
            }),
        }
        match gone_is {
            true => set(&mut self.names, gone),
            false => self.pending_names.push(PendingName {
                operation,
                names: gone.to_vec(),
                after_previous: !there_is,
            }),
        }
    }

    /// The calls whose effect is not durable.
    pub(crate) fn pending(&self) -> Vec<String> {
        let names = self.pending_names.iter().map(|pending| pending.operation);
        let data = self.pending_data.values().flatten().copied();
        let mut numbers: Vec<usize> = names.chain(data).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let call = |number: usize| self.disk.operations[number].call.clone();
        numbers.into_iter().map(call).collect()
    }

    /// Choice number `number`.
    pub(crate) fn choice(&self, number: usize, seed: u64) -> Choice {
        let chosen = match self.model {
            Model::Strict => self.independent(number),
            Model::Ordered | Model::Zeros => self.in_order(number),
        };
        chosen.unwrap_or_else(|| self.random(&mut Random::new(seed ^ number as u64)))
    }

    fn whole(&self) -> Data {
        match self.model {
            Model::Zeros => Data::Zeros(None),
            Model::Ordered | Model::Strict => Data::All,
        }
    }

    /// Keeps the first `names` changes of names, and `data` of each file.
    fn up_to(&self, names: usize, data: Data) -> Choice {
        let count = self.pending_names.len();
        Choice {
            names: (0..count).map(|at| at < names).collect(),
            data: self.pending_data.keys().map(|file| (*file, data)).collect(),
        }
    }

    fn with_file(mut choice: Choice, file: Node, data: Data) -> Choice {
        choice.data.insert(file, data);
        choice
    }

    fn in_order(&self, number: usize) -> Option<Choice> {
        let (names, whole) = (self.pending_names.len(), self.whole());
        let mut choices = vec![
            self.up_to(0, Data::Nothing),
            self.up_to(names, whole),
            self.up_to(names, Data::Nothing),
            self.up_to(0, whole),
            self.up_to(names, Data::Part(0.5)),
            self.up_to(0, Data::Part(0.5)),
        ];
        for file in self.pending_data.keys() {
            choices.push(Self::with_file(
                self.up_to(names, Data::Nothing),
                *file,
                whole,
            ));
            choices.push(Self::with_file(
                self.up_to(names, Data::All),
                *file,
                Data::Nothing,
            ));
            choices.push(Self::with_file(self.up_to(0, Data::Nothing), *file, whole));
            choices.push(Self::with_file(
                self.up_to(0, Data::All),
                *file,
                Data::Part(0.7),
            ));
        }
        for count in 1..names {
            choices.push(self.up_to(count, Data::Nothing));
            choices.push(self.up_to(count, whole));
        }
        choices.into_iter().nth(number)
    }

    fn independent(&self, number: usize) -> Option<Choice> {
        let names = self.pending_names.len();
        let (nothing, all) = (self.up_to(0, Data::Nothing), self.up_to(names, Data::All));
        match number {
            0 => return Some(nothing),
            1 => return Some(all),
            2 => return Some(self.up_to(0, Data::All)),
            3 => return Some(self.up_to(names, Data::Nothing)),
            _ => {}
        }
        let (alone, kept) = ((number - 4) / 2, number.is_multiple_of(2));
        let mut choice = if kept { nothing } else { all };
        if alone < names {
            choice.names[alone] = kept;
            return Some(choice);
        }
        let file = *self.pending_data.keys().nth(alone - names)?;
        let data = if kept { Data::All } else { Data::Nothing };
        Some(Self::with_file(choice, file, data))
    }

    fn random(&self, random: &mut Random) -> Choice {
        let count = self.pending_names.len();
        let names = match self.model {
            Model::Strict => (0..count).map(|_| random.below(2) == 0).collect(),
            Model::Ordered | Model::Zeros => {
                let kept = random.below(count as u64 + 1) as usize;
                (0..count).map(|at| at < kept).collect()
            }
        };
        let data = |random: &mut Random| match (random.below(6), self.model) {
            (0, _) => Data::Nothing,
            (1, _) => Data::All,
            (_, Model::Ordered) => Data::Part(random.part()),
            (_, Model::Strict) => Data::Pages(random.next()),
            (2, Model::Zeros) => Data::Zeros(None),
            (_, Model::Zeros) => Data::Zeros(Some(random.next())),
        };
        let files = self.pending_data.keys();
        Choice {
            names,
            data: files.map(|file| (*file, data(random))).collect(),
        }
    }

    /// The state of the data directory after the cut.
    pub(crate) fn state(&self, choice: &Choice) -> State {
        let mut names = self.names.clone();
        let mut kept = self.committed;
        let mut previous = true;
        for (pending, chosen) in self.pending_names.iter().zip(&choice.names) {
            let there = *chosen && (previous || !pending.after_previous);
            if there {
                set(&mut names, &pending.names);
                kept = kept.max(pending.operation + 1);
            }
            previous = there;
        }
        let mut files: BTreeMap<Node, Arc<Content>> = BTreeMap::new();
        for (file, content) in &self.files {
            if !self.pending_data.contains_key(file) {
                files.insert(*file, Arc::new(content.clone()));
            }
        }
        for (file, pending) in &self.pending_data {
            let durable = self.files.get(file).cloned().unwrap_or_default();
            let data = choice.data.get(file).copied().unwrap_or(Data::Nothing);
            let content = match self.model {
                Model::Strict => self.scattered(durable, pending, data),
                Model::Ordered | Model::Zeros => self.beginning(durable, pending, data, kept),
            };
            files.insert(*file, Arc::new(content));
        }
        State::new(self.disk, &names, files)
    }

    /// Keeps a prefix of the writes. A truncation is journaled like a name, so no later write is kept without it.
    fn beginning(
        &self,
        mut content: Content,
        pending: &[usize],
        data: Data,
        kept: usize,
    ) -> Content {
        let bytes = |number: &usize| match &self.disk.operations[*number].change {
            Change::Write { bytes, .. } => bytes.len(),
            _ => 0,
        };
        let total: usize = pending.iter().map(bytes).sum();
        let mut left = match data {
            Data::Nothing => 0,
            Data::Part(part) => (total as f64 * part) as usize,
            Data::All | Data::Pages(_) | Data::Zeros(_) => total,
        };
        let mut durable = content.bytes.len();
        for number in pending {
            let operation = &self.disk.operations[*number];
            match &operation.change {
                Change::Length { .. } if *number < kept => {
                    content.apply(operation);
                    durable = durable.min(content.bytes.len());
                }
                Change::Length { .. } => break,
                Change::Write { at, bytes, .. } => {
                    let count = left.min(bytes.len());
                    left -= count;
                    if count > 0 {
                        content.write(*at, &bytes[..count], operation.time);
                    }
                }
                Change::Names(_) => {}
            }
        }
        if let Data::Zeros(seed) = data {
            let mut random = seed.map(Random::new);
            let durable = durable.min(content.bytes.len());
            for page in content.bytes[durable..].chunks_mut(PAGE) {
                if random.as_mut().is_none_or(|random| random.below(2) == 0) {
                    page.fill(0);
                }
            }
        }
        content
    }

    /// Keeps any subset of the written pages.
    fn scattered(&self, mut content: Content, pending: &[usize], data: Data) -> Content {
        let mut random = match data {
            Data::Nothing => return content,
            Data::Pages(seed) => Some(Random::new(seed)),
            Data::All | Data::Part(_) | Data::Zeros(_) => None,
        };
        let mut there = || random.as_mut().is_none_or(|random| random.below(2) == 0);
        for number in pending {
            let operation = &self.disk.operations[*number];
            match &operation.change {
                Change::Write { at, bytes, .. } => {
                    let mut begin = 0;
                    while begin < bytes.len() {
                        let at = *at + begin as u64;
                        let room = PAGE - at as usize % PAGE;
                        let end = bytes.len().min(begin + room);
                        if there() {
                            content.write(at, &bytes[begin..end], operation.time);
                        }
                        begin = end;
                    }
                }
                _ if there() => content.apply(operation),
                _ => {}
            }
        }
        content
    }
}

fn set(names: &mut BTreeMap<(Node, String), Node>, changes: &[Name]) {
    for change in changes {
        let key = (change.folder, change.name.clone());
        match change.leads_to {
            Some(node) => names.insert(key, node),
            None => names.remove(&key),
        };
    }
}
