//! items listed, changed and taken out -> what happens to cells: a tree is flipped, or shards are exchanged.

use super::cells::{Cells, Shard, Swap};
use super::forest::{Forest, MAX_CELLS, Stream};
use super::graph::{Graph, Item, NONE, Walk};
use crate::dynamic::access::Access;
use crate::error::BuildError;
use crate::hash::{Digest, Salt};

/// A shard with so many items is split.
const MAX_ITEMS: usize = 4096;
/// Cells per ten items: a shard with fewer than `LOW` gets `HIGH`, and one with more than `LOOSE` too.
const LOW: usize = 21;
const HIGH: usize = 24;
const LOOSE: usize = 28;
/// Items of a shard that is built with all others, at most, and its cells per ten items.
const FRESH_ITEMS: usize = 3700;
const FRESH: usize = 23;
/// Items below which a shard does not shrink.
const SMALL: usize = 512;
/// Levels of the directory above what even shards need. Random digests do not reach it; those that were chosen for a known salt do.
const SPARE_DEPTH: u32 = 8;
/// A batch with more items than one in so many of a shard's is built with the shard: a rebuild takes as long as a few hundred changes.
const FEW: usize = 12;

/// What is known of all items: the graph of every shard, which no query reads.
#[derive(Clone)]
pub(crate) struct Graphs {
    shards: Vec<Graph>,
    len: usize,
    random: Stream,
    walk: Walk,
    forest: Forest,
}

/// Cells for fresh shards of so many items.
fn roomy(items: usize) -> usize {
    items * HIGH / 10
}

impl Graphs {
    /// Cells and graphs of distinct items.
    pub(super) fn build(mut items: Vec<Item>, mut random: Stream) -> Result<(Graphs, Cells), BuildError> {
        let depth = items.len().div_ceil(FRESH_ITEMS).next_power_of_two().ilog2();
        let mut forest = Forest::default();
        let salt = Salt::new(random.next());
        items.sort_unstable_by_key(|item| item.key.salted(salt));
        let (mut shards, mut cells, mut rest) = (vec![], vec![], &items[..]);
        for prefix in 0..1u64 << depth {
            let here = rest.partition_point(|item| item.key.salted(salt) >> 1 >> (63 - depth) <= prefix);
            let (items, others) = rest.split_at(here);
            rest = others;
            let (graph, shard) = make(&mut forest, &mut random, depth, items, items.len() * FRESH / 10)?;
            shards.push(graph);
            cells.push(shard);
        }
        let graphs = Graphs { shards, len: items.len(), random, walk: Walk::default(), forest };
        Ok((graphs, Cells::new(salt, cells)))
    }

    /// How many items are listed.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Every item.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Digest> + '_ {
        self.shards.iter().flat_map(Graph::keys)
    }

    /// Bytes of memory next to the cells.
    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|graph| graph.bytes() + size_of::<Graph>() as u64).sum()
    }

    /// Items times salts that were tried, so far: what rebuilding has cost.
    #[cfg(test)]
    pub(crate) fn work(&self) -> u64 {
        self.forest.work
    }

    /// The bit of a digest, if it is listed.
    pub(crate) fn listed(&self, cells: &Cells, key: Digest) -> Option<bool> {
        let place = cells.place(cells.prefix(key));
        let shard = cells.shard(place);
        self.shards[place].find(key, shard.ends(key)).map(|_| shard.get(key))
    }

    /// Lists a digest with this bit, or changes its bit; true if it was not listed. After an error nothing has changed.
    pub(crate) fn set(&mut self, shown: &mut impl Access<Cells>, key: Digest, bit: bool) -> Result<bool, BuildError> {
        enum Step {
            None,
            Flip(usize),
            Rebuild(usize),
        }
        let (place, new, step) = shown.read(|cells| {
            let place = cells.place(cells.prefix(key));
            let (shard, graph) = (cells.shard(place), &mut self.shards[place]);
            let ends = shard.ends(key);
            let found = graph.find(key, ends);
            let (items, have) = (graph.len() + 1, 2 * shard.half());
            if found.is_none() && (items > MAX_ITEMS || 10 * have < LOW * items) {
                return (place, true, Step::Rebuild(roomy(items)));
            }
            let differs = shard.get(key) != bit;
            if found.is_some() && !differs {
                return (place, false, Step::None);
            }
            match self.walk.smaller(graph, shard, ends, found.unwrap_or(NONE)) {
                None => (place, found.is_none(), Step::Rebuild(have)),
                Some(side) => {
                    if found.is_none() {
                        graph.push(key, ends);
                    }
                    (place, found.is_none(), if differs { Step::Flip(side) } else { Step::None })
                }
            }
        });
        match step {
            Step::None => {}
            Step::Flip(side) => shown.change(|cells| cells.flip(place, self.walk.cells(side))),
            Step::Rebuild(cells) => {
                let mut items = shown.read(|cells| self.items(cells, place));
                items.push(Item { key, bit });
                self.exchange(shown, place, items, cells)?;
            }
        }
        self.len += usize::from(new);
        Ok(new)
    }

    /// Takes a digest out; false if it is not listed.
    pub(crate) fn remove(&mut self, shown: &mut impl Access<Cells>, key: Digest) -> bool {
        let removed = shown.read(|cells| {
            let place = cells.place(cells.prefix(key));
            let (shard, graph) = (cells.shard(place), &mut self.shards[place]);
            let edge = graph.find(key, shard.ends(key))?;
            graph.remove(edge, shard);
            let (items, have) = (graph.len(), 2 * shard.half());
            let loose = items >= SMALL && 10 * have > LOOSE * items;
            Some((place, loose.then(|| self.items(cells, place))))
        });
        let Some((place, shrink)) = removed else { return false };
        self.len -= 1;
        if let Some(items) = shrink {
            let cells = roomy(items.len());
            // A shard that finds no salt in fewer cells stays as it is.
            self.exchange(shown, place, items, cells).unwrap_or_default();
        }
        true
    }

    /// Lists or changes many digests, of equal ones the last: at most one rebuild for every shard.
    ///
    /// After an error some are done.
    pub(crate) fn set_many(
        &mut self,
        shown: &mut impl Access<Cells>,
        items: impl IntoIterator<Item = (Digest, bool)>,
    ) -> Result<(), BuildError> {
        let with_prefix = |(key, bit)| (shown.read(|cells| cells.prefix(key)), Item { key, bit });
        let mut items: Vec<(u64, Item)> = items.into_iter().map(with_prefix).collect();
        items.sort_by_key(|(prefix, item)| (*prefix, item.key));
        let mut rest = &items[..];
        while let [(first, _), ..] = rest {
            let place = shown.read(|cells| cells.place(*first));
            let shift = 63 - self.shards[place].depth;
            let here = rest.partition_point(|(prefix, _)| prefix >> 1 >> shift == first >> 1 >> shift);
            let (batch, others) = rest.split_at(here);
            rest = others;
            if batch.len() * FEW < self.shards[place].len() {
                for (_, Item { key, bit }) in batch {
                    self.set(shown, *key, *bit)?;
                }
                continue;
            }
            let (mut all, have) = shown.read(|cells| (self.items(cells, place), 2 * cells.shard(place).half()));
            let before = all.len();
            for (_, item) in batch {
                let known = shown.read(|cells| self.shards[place].find(item.key, cells.shard(place).ends(item.key)));
                match known {
                    Some(edge) => all[usize::from(edge)].bit = item.bit,
                    None if all.len() > before && all[all.len() - 1].key == item.key => {
                        all.pop();
                        all.push(*item);
                    }
                    None => all.push(*item),
                }
            }
            let new = all.len() - before;
            let fits = 10 * have >= LOW * all.len() && 10 * have <= HIGH * all.len();
            let cells = if fits { have } else { roomy(all.len()) };
            self.exchange(shown, place, all, cells)?;
            self.len += new;
        }
        Ok(())
    }

    /// The items of a shard, in the order of their edges.
    fn items(&self, cells: &Cells, place: usize) -> Vec<Item> {
        let shard = cells.shard(place);
        let mut items = Vec::with_capacity(self.shards[place].len() + 1);
        items.extend(self.shards[place].keys().map(|key| Item { key, bit: shard.get(key) }));
        items
    }

    /// Rebuilds a shard from other items, in so many cells, or in several shards if they are too many.
    ///
    /// All is built first and exchanged last.
    fn exchange(
        &mut self,
        shown: &mut impl Access<Cells>,
        place: usize,
        items: Vec<Item>,
        cells: usize,
    ) -> Result<(), BuildError> {
        let depth = self.shards[place].depth;
        if items.len() <= MAX_ITEMS {
            let (graph, shard) = make(&mut self.forest, &mut self.random, depth, &items, cells)?;
            shown.change(|cells| cells.swap(Swap { shards: vec![(place, shard)], directory: None }));
            self.shards[place] = graph;
            return Ok(());
        }
        // Its parts, in the order of their prefixes: how many bits of a prefix lead there, and the items.
        let mut parts = vec![];
        let mut open = vec![(depth, items)];
        let most = ((self.len + open[0].1.len()) / MAX_ITEMS + 1).ilog2() + SPARE_DEPTH;
        while let Some((depth, items)) = open.pop() {
            if items.len() <= MAX_ITEMS {
                parts.push((depth, items));
                continue;
            }
            if depth >= most {
                parts.push((depth, items));
                parts.extend(open);
                return self.start_again(shown, place, parts);
            }
            let bit = |item: &Item| shown.read(|cells| cells.prefix(item.key)) << depth >> 63;
            let (left, right): (Vec<Item>, Vec<Item>) = items.into_iter().partition(|item| bit(item) == 0);
            open.push((depth + 1, right));
            open.push((depth + 1, left));
        }
        let (mut graphs, mut shards) = (vec![], vec![]);
        for (i, (depth, items)) in parts.iter().enumerate() {
            let number = if i == 0 { place } else { self.shards.len() + i - 1 };
            let (graph, shard) = make(&mut self.forest, &mut self.random, *depth, items, roomy(items.len()))?;
            graphs.push((number, graph));
            shards.push((number, shard));
        }
        let directory = shown.read(|cells| {
            let (was, old) = cells.directory();
            let now = graphs.iter().fold(was, |most, (_, graph)| most.max(graph.depth));
            let mut next = Vec::with_capacity(old.len() << (now - was));
            old.iter().for_each(|&number| next.extend(std::iter::repeat_n(number, 1 << (now - was))));
            let start = next.iter().position(|&number| number as usize == place).unwrap_or_default();
            let mut to = next.iter_mut().skip(start);
            for (number, graph) in &graphs {
                to.by_ref().take(1 << (now - graph.depth)).for_each(|entry| *entry = *number as u32);
            }
            (now, next)
        });
        shown.change(|cells| cells.swap(Swap { shards, directory: Some(directory) }));
        for (number, graph) in graphs {
            match self.shards.get_mut(number) {
                Some(old) => *old = graph,
                None => self.shards.push(graph),
            }
        }
        Ok(())
    }

    /// Places all items by another salt: digests were chosen that fall into one shard.
    fn start_again(
        &mut self,
        shown: &mut impl Access<Cells>,
        place: usize,
        parts: Vec<(u32, Vec<Item>)>,
    ) -> Result<(), BuildError> {
        let mut items: Vec<Item> = parts.into_iter().flat_map(|(_, items)| items).collect();
        let others = (0..self.shards.len()).filter(|&other| other != place);
        shown.read(|cells| others.for_each(|other| items.extend(self.items(cells, other))));
        let (graphs, next) = Graphs::build(items, self.random.clone())?;
        shown.change(|cells| *cells = next);
        // The caller counts the items that it adds.
        let (len, work) = (self.len, self.forest.work);
        *self = Graphs { len, ..graphs };
        self.forest.work += work;
        Ok(())
    }
}

fn make(
    forest: &mut Forest,
    random: &mut Stream,
    depth: u32,
    items: &[Item],
    cells: usize,
) -> Result<(Graph, Shard), BuildError> {
    let shard = forest.solve(items, cells.min(MAX_CELLS), random)?;
    Ok((Graph::new(depth, 2 * shard.half(), items, &forest.ends), shard))
}
