//! Addresses taken over time: the lowest place that is free for a whole life.
//!
//! Lives are numbered by their births, and a life covers the births from its own
//! to the last before its end: two lives are alive together exactly where their
//! covers meet. A segment tree over the births holds, at each node, the addresses
//! of lives that cover it whole, and those of all lives below it; a question looks
//! at a logarithm of nodes, whose addresses are merged where they touch.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint ranges of addresses that do not touch: start and end.
#[derive(Clone, Default)]
struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    fn insert(&mut self, mut start: u64, mut end: u64) {
        if let Some((&below, &its_end)) = self.0.range(..start).next_back() {
            if its_end >= start {
                start = below;
                end = end.max(its_end);
            }
        }
        while let Some((&next, &its_end)) = self.0.range(start..=end).next() {
            self.0.remove(&next);
            end = end.max(its_end);
        }
        self.0.insert(start, end);
    }

    /// The end of the last range that meets `start..end`: before it nothing of that
    /// length fits.
    fn beyond(&self, start: u64, end: u64) -> Option<u64> {
        let (_, &its_end) = self.0.range(..end).next_back()?;
        (its_end > start).then_some(its_end)
    }
}

/// See the module.
pub struct Taken {
    leaves: usize,
    whole: Vec<Ranges>,
    below: Vec<Ranges>,
}

impl Taken {
    /// Of so many lives, none of them placed.
    pub fn new(lives: usize) -> Taken {
        let leaves = lives.next_power_of_two();
        let empty = || vec![Ranges::default(); 2 * leaves];
        Taken { leaves, whole: empty(), below: empty() }
    }

    /// Takes `bytes` at `at` for the births of `cover`, which has one at least.
    pub fn take(&mut self, cover: Range<usize>, at: u64, bytes: u64) {
        let end = at + bytes;
        for node in self.inside(&cover) {
            self.whole[node].insert(at, end);
            self.below[node].insert(at, end);
        }
        for node in self.above(&cover) {
            self.below[node].insert(at, end);
        }
    }

    /// The lowest place of `bytes` that is free over `cover`, if it ends below 2^64.
    pub fn lowest(&self, cover: Range<usize>, bytes: u64) -> Option<u64> {
        let inside = self.inside(&cover).into_iter().map(|node| &self.below[node]);
        let above = self.above(&cover).into_iter().map(|node| &self.whole[node]);
        let met: Vec<&Ranges> = inside.chain(above).filter(|ranges| !ranges.0.is_empty()).collect();
        let (mut at, mut quiet, mut turn) = (0u64, 0, 0);
        let mut end = bytes;
        while quiet < met.len() {
            match met[turn].beyond(at, end) {
                Some(next) => {
                    at = next;
                    end = at.checked_add(bytes)?;
                    quiet = 0;
                }
                None => quiet += 1,
            }
            turn = (turn + 1) % met.len();
        }
        Some(at)
    }

    /// The largest nodes that together are `cover`.
    fn inside(&self, cover: &Range<usize>) -> Vec<usize> {
        let (mut left, mut right) = (cover.start + self.leaves, cover.end + self.leaves);
        let mut nodes = Vec::new();
        while left < right {
            if left % 2 == 1 {
                nodes.push(left);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                nodes.push(right);
            }
            left /= 2;
            right /= 2;
        }
        nodes
    }

    /// The nodes that lie partly in `cover`: each is above an end of it.
    fn above(&self, cover: &Range<usize>) -> Vec<usize> {
        let (mut left, mut right) = (cover.start + self.leaves, cover.end - 1 + self.leaves);
        let (mut nodes, mut width) = (Vec::new(), 1);
        while left > 1 {
            left /= 2;
            right /= 2;
            width *= 2;
            let first = |node: usize| node * width - self.leaves;
            if first(left) < cover.start || first(left) + width > cover.end {
                nodes.push(left);
            }
            if right != left && (first(right) < cover.start || first(right) + width > cover.end) {
                nodes.push(right);
            }
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every question answered as by looking at all lives.
    #[test]
    fn the_lowest_place_is_that_of_a_search_over_all() {
        let mut seed = 7u64;
        let mut draw = |most: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) % most
        };
        for lives in 1..40usize {
            let mut taken = Taken::new(lives);
            let mut placed: Vec<(Range<usize>, u64, u64)> = Vec::new();
            for _ in 0..60 {
                let start = draw(lives as u64) as usize;
                let cover = start..start + 1 + draw((lives - start) as u64) as usize;
                let bytes = 1 + draw(9);
                let free = |at: u64| {
                    placed.iter().all(|(other, from, size)| {
                        cover.end <= other.start
                            || other.end <= cover.start
                            || at + bytes <= *from
                            || from + size <= at
                    })
                };
                let wanted = (0..).find(|&at| free(at));
                assert_eq!(taken.lowest(cover.clone(), bytes), wanted);
                taken.take(cover.clone(), wanted.unwrap(), bytes);
                placed.push((cover, wanted.unwrap(), bytes));
            }
        }
    }

    /// No place below 2^64 is no place.
    #[test]
    fn an_end_beyond_the_addresses_is_none() {
        let mut taken = Taken::new(1);
        taken.take(0..1, 0, u64::MAX - 1);
        assert_eq!(taken.lowest(0..1, 2), None);
        assert_eq!(taken.lowest(0..1, 1), Some(u64::MAX - 1));
    }
}
