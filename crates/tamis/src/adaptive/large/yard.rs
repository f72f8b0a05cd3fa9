//! the entire hash of a key -> its place in the back yard, or its grave (\[Broom\] section 4.3).
//!
//! A word is 61 bits of hash and 3 bits of state. Linear probing; a word gives way to one that is further from home (Robin Hood), so
//! a search ends as soon as it meets a word that is nearer to its own: strangers look at two or three, all in one or two cache lines.
//!
//! ```text
//!   0 free   1 turned away (no slot)   2 driven out (a false positive)   3, 4, 5 a grave, of a hash function by its number mod 3
//! ```
//!
//! A *grave* is a key that was driven out and then removed: if it comes back under the same hash function it must come back here, or the
//! false positive that drove it out would be one again. The graves of a function that is no longer in use are swept away by steps. Two
//! functions are in use and one may still have graves: hence three marks.

pub(super) const TURNED_AWAY: u64 = 1;
pub(super) const DRIVEN_OUT: u64 = 2;
const GRAVE: u64 = 3;
const STATE: u64 = 7;

/// The mark of a grave of this hash function.
pub(super) fn grave(function: u64) -> u64 {
    GRAVE + function % 3
}

/// The word of a grave.
pub(super) fn grave_word(hash: u64, function: u64) -> u64 {
    hash & !STATE | grave(function)
}

/// Whether the key of a word was driven out of its slot.
pub(super) fn is_driven_out(word: u64) -> bool {
    word & STATE == DRIVEN_OUT
}

/// The back yard.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Yard {
    words: Vec<u64>,
    /// Words that may be taken.
    limit: u64,
    live: u64,
    graves: [u64; 3],
    /// Where the sweeping goes on.
    broom: usize,
}

impl Yard {
    /// An empty yard; none if there is no memory for it.
    pub(super) fn new(slots: u64, limit: u64) -> Option<Yard> {
        let slots = usize::try_from(slots).ok()?;
        let mut words = vec![];
        words.try_reserve_exact(slots).ok()?;
        words.resize(slots, 0);
        Some(Yard { words, limit, live: 0, graves: [0; 3], broom: 0 })
    }

    /// Keys, without graves.
    pub(super) fn keys(&self) -> u64 {
        self.live
    }

    /// Graves of this hash function.
    pub(super) fn graves(&self, function: u64) -> u64 {
        self.graves[(function % 3) as usize]
    }

    /// Words that are taken.
    pub(super) fn taken(&self) -> u64 {
        self.live + self.graves.iter().sum::<u64>()
    }

    pub(super) fn has_room(&self) -> bool {
        self.taken() < self.limit
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    #[inline(always)]
    fn home(&self, word: u64) -> usize {
        ((u128::from(word & !STATE) * self.words.len() as u128) >> 64) as usize
    }

    #[inline(always)]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.words.len() { 0 } else { at + 1 }
    }

    /// How far from home a word lies.
    #[inline(always)]
    fn distance(&self, word: u64, at: usize) -> usize {
        let home = self.home(word);
        if at >= home { at - home } else { at + self.words.len() - home }
    }

    /// The place of the first word of this hash whose state is wanted.
    #[inline(always)]
    fn search(&self, hash: u64, wanted: impl Fn(u64) -> bool) -> Option<usize> {
        let mut at = self.home(hash);
        for far in 0..self.words.len() {
            let word = self.words[at];
            if word == 0 {
                return None;
            }
            if (word ^ hash) & !STATE == 0 && wanted(word & STATE) {
                return Some(at);
            }
            if self.distance(word, at) < far {
                return None;
            }
            at = self.after(at);
        }
        None
    }

    /// The word of a key with this hash. Graves do not count.
    #[inline(always)]
    pub(super) fn find(&self, hash: u64) -> Option<u64> {
        self.search(hash, |state| state < GRAVE).map(|at| self.words[at])
    }

    /// Whether a key with this hash was driven out, and then removed.
    pub(super) fn is_grave(&self, hash: u64, function: u64) -> bool {
        self.graves(function) > 0 && self.search(hash, |state| state == grave(function)).is_some()
    }

    fn count(&mut self, state: u64) -> &mut u64 {
        match state {
            GRAVE.. => &mut self.graves[(state - GRAVE) as usize % 3],
            _ => &mut self.live,
        }
    }

    /// Puts a hash in; there must be room. Returns how many words were looked at.
    pub(super) fn put(&mut self, hash: u64, state: u64) -> u32 {
        let mut word = hash & !STATE | state;
        *self.count(state) += 1;
        let (mut at, mut far) = (self.home(word), 0);
        for looked in 1.. {
            let resident = self.words[at];
            if resident == 0 {
                self.words[at] = word;
                return looked;
            }
            let distance = self.distance(resident, at);
            if distance < far {
                self.words[at] = std::mem::replace(&mut word, resident);
                far = distance;
            }
            (at, far) = (self.after(at), far + 1);
        }
        0
    }

    /// Takes out a word that is there. Returns how many words were looked at.
    pub(super) fn take(&mut self, word: u64) -> u32 {
        match self.search(word, |state| state == word & STATE) {
            Some(at) => self.free(at),
            None => 0,
        }
    }

    /// Frees a slot: those behind it that are not at home come one nearer.
    fn free(&mut self, mut at: usize) -> u32 {
        *self.count(self.words[at] & STATE) -= 1;
        for looked in 1.. {
            let next = self.after(at);
            let word = self.words[next];
            if word == 0 || self.distance(word, next) == 0 {
                self.words[at] = 0;
                return looked;
            }
            self.words[at] = word;
            at = next;
        }
        0
    }

    /// Goes on sweeping through so many slots: the graves of this hash function disappear.
    pub(super) fn sweep(&mut self, function: u64, slots: u32) -> u32 {
        let mut looked = 0;
        for _ in 0..slots {
            if self.graves(function) == 0 {
                break;
            }
            looked += 1;
            match self.words[self.broom] & STATE == grave(function) {
                // Another word has come here; it is looked at next.
                true => looked += self.free(self.broom),
                false => self.broom = self.after(self.broom),
            }
        }
        looked
    }

    /// Limit and place of the broom; the words.
    pub(super) fn parts(&self) -> (u64, usize, &[u64]) {
        (self.limit, self.broom, &self.words)
    }

    /// A yard from its parts; the error says what no filter writes.
    pub(super) fn from_parts(limit: u64, broom: u64, words: Vec<u64>) -> Result<Yard, String> {
        let slots = words.len() as u64;
        if limit >= slots || broom >= slots {
            return Err(format!(
                "yard: {limit} words may be taken and the broom is at {broom}, expected less than {slots}"
            ));
        }
        let mut yard = Yard { words, limit, live: 0, graves: [0; 3], broom: broom as usize };
        for at in 0..yard.words.len() {
            let (word, next) = (yard.words[at], yard.after(at));
            match word & STATE {
                0 if word != 0 => return Err(format!("yard, slot {at}: a hash without a state")),
                0 => {}
                6.. => return Err(format!("yard, slot {at}: state {}, expected 0 to 5", word & STATE)),
                state => *yard.count(state) += 1,
            }
            let follower = yard.words[next];
            let reach = if word == 0 { 0 } else { yard.distance(word, at) + 1 };
            if follower != 0 && yard.distance(follower, next) > reach {
                return Err(format!("yard, slot {next}: a hash that is not found from its home"));
            }
        }
        match yard.taken() <= limit {
            true => Ok(yard),
            false => Err(format!("yard: {} words are taken, expected at most {limit}", yard.taken())),
        }
    }
}
